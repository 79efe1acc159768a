# How every C file of Kiln is compiled.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # libkiln.a may end in a host's shared object
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)   # clang-tidy
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()

include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/runtime)
add_compile_definitions(_POSIX_C_SOURCE=200809L KILN_VERSION="${PROJECT_VERSION}")

# Scalar semantics are strict everywhere: results must not depend on the compiler.
add_compile_options(-ffp-contract=off)

set(KILN_WARNINGS
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wold-style-definition -Wwrite-strings -Wcast-qual -Wcast-align -Wpointer-arith -Wundef -Wvla
    -Wformat=2 -Wimplicit-fallthrough -Wdouble-promotion -Wconversion -Wsign-conversion
    -Wnull-dereference)
if(KILN_WERROR)
  list(APPEND KILN_WARNINGS -Werror)
endif()
add_compile_options(${KILN_WARNINGS})

set(kiln_sanitizers "")
if(KILN_SANITIZE OR KILN_FUZZ)
  set(kiln_sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  if(CMAKE_C_COMPILER_ID MATCHES Clang)
    # That check reads the bytes before a called function: wrong for code made by the JIT.
    list(APPEND kiln_sanitizers -fno-sanitize=function)
  endif()
endif()
if(KILN_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "KILN_FUZZ needs clang (libFuzzer); use the preset `fuzz`")
  endif()
  list(APPEND kiln_sanitizers -fsanitize=fuzzer-no-link)
endif()
add_compile_options(${kiln_sanitizers})
add_link_options(${kiln_sanitizers})
