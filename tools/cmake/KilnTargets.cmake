# The functions that the folders' CMakeLists.txt use.

set_property(GLOBAL PROPERTY kiln_layers "")

# kiln_layer(NAME [LINK libs...] [EXCLUDE regex...] [EXTRA files...])
# A static library of all *.c of this folder and below. A folder without any is an interface
# library, so that what depends on it configures all the same. EXCLUDE matches paths relative to
# the folder.
function(kiln_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK;EXCLUDE;EXTRA")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.c)
  foreach(regex IN LISTS arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${regex})
  endforeach()
  list(APPEND sources ${arg_EXTRA})
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC ${arg_LINK})
    set_property(GLOBAL APPEND PROPERTY kiln_layers ${name})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${arg_LINK})
  endif()
endfunction()

# libkiln.a: all layers in one archive, for a host program that uses the C API.
function(kiln_umbrella)
  get_property(layers GLOBAL PROPERTY kiln_layers)
  set(objects "")
  foreach(layer IN LISTS layers)
    list(APPEND objects $<TARGET_OBJECTS:${layer}>)
  endforeach()
  if(objects)
    add_library(kiln_all STATIC ${objects})
    set_target_properties(kiln_all PROPERTIES OUTPUT_NAME kiln LINKER_LANGUAGE C)
  endif()
endfunction()

# kiln_embed(OUT_C SYMBOL FILE): a C file that defines `const unsigned char SYMBOL[]` and
# `const size_t SYMBOL_size` with FILE's bytes. FILE may be the empty string: no bytes.
function(kiln_embed out symbol file)
  add_custom_command(
    OUTPUT ${out}
    COMMAND kiln-embed ${out} ${symbol} ${file}
    DEPENDS kiln-embed ${file}
    COMMENT "Embedding ${symbol}"
    VERBATIM)
endfunction()
