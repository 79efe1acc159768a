# What Kiln needs of the machine. Whatever is missing is named, with its Debian package, all at
# once.

find_package(Threads REQUIRED)
find_package(PkgConfig)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "Missing pkg-config; on Debian: apt-get install pkg-config")
endif()
pkg_check_modules(ISL IMPORTED_TARGET isl)
pkg_check_modules(CJSON IMPORTED_TARGET libcjson)
pkg_check_modules(PROTOBUF_C IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
find_library(KILN_GMP gmp) # isl is linked with it
find_program(KILN_PROTOC_C protoc-c)

set(kiln_missing "")
macro(kiln_need found package)
  if(NOT ${found})
    list(APPEND kiln_missing ${package})
  endif()
endmacro()
kiln_need(ISL_FOUND libisl-dev)
kiln_need(KILN_GMP libgmp-dev)
kiln_need(CJSON_FOUND libcjson-dev)
kiln_need(PROTOBUF_C_FOUND libprotobuf-c-dev)
kiln_need(KILN_PROTOC_C protobuf-c-compiler)
if(BUILD_TESTING)
  kiln_need(CMOCKA_FOUND libcmocka-dev)
endif()
if(kiln_missing)
  list(JOIN kiln_missing " " kiln_missing)
  message(FATAL_ERROR "Missing packages; on Debian: apt-get install ${kiln_missing}")
endif()

# LLVM is optional: without it Kiln still compiles to C and interprets.
# The target kiln_llvm carries its headers and library, or nothing.
add_library(kiln_llvm INTERFACE)
set(KILN_HAVE_LLVM 0)
if(KILN_LLVM)
  find_program(KILN_LLVM_CONFIG NAMES llvm-config-19)
  if(KILN_LLVM_CONFIG)
    set(KILN_HAVE_LLVM 1)
    execute_process(COMMAND ${KILN_LLVM_CONFIG} --includedir
                    OUTPUT_VARIABLE llvm_include OUTPUT_STRIP_TRAILING_WHITESPACE
                    COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND ${KILN_LLVM_CONFIG} --libdir
                    OUTPUT_VARIABLE llvm_libdir OUTPUT_STRIP_TRAILING_WHITESPACE
                    COMMAND_ERROR_IS_FATAL ANY)
    target_include_directories(kiln_llvm SYSTEM INTERFACE ${llvm_include})
    target_link_directories(kiln_llvm INTERFACE ${llvm_libdir})
    target_link_libraries(kiln_llvm INTERFACE LLVM-19)
  else()
    message(STATUS "llvm-config-19 not found: no LLVM back end, no JIT; on Debian: "
                   "apt-get install llvm-19-dev")
  endif()
endif()
add_compile_definitions(KILN_HAVE_LLVM=${KILN_HAVE_LLVM})

# clang turns the host's intrinsics into the bitcode that the JIT inlines.
set(KILN_HAVE_BITCODE 0)
find_program(KILN_CLANG NAMES clang-19)
if(KILN_HAVE_LLVM AND KILN_CLANG)
  set(KILN_HAVE_BITCODE 1)
elseif(KILN_HAVE_LLVM)
  message(STATUS "clang-19 not found: the JIT cannot inline the host's intrinsics; on Debian: "
                 "apt-get install clang-19")
endif()
