# unidle_module(NAME [HOT] [USES module...] [LINKS target...])
#
# One static library `unidle_NAME` from the folder's sources, one test program `unidle_NAME_test` from its *_test.cpp
# files, and `unidle_NAME_testing` from testing/ (fakes for other modules' tests). TEST_SHARDS, TEST_LABELS,
# TEST_NIGHTLY: as for unidle_unit_tests. New files are found automatically. HOT: for modules whose speed matters (see
# UnidleOptions). HEADERS names the precompiled headers of the library (default: the core's; OWN: the module defines
# its own, also for its tests).

# HEADERS as given to the module; INSTEAD, if given, replaces them unless the module has its own.
function(unidle_module_headers TARGET HEADERS)
  if(HEADERS STREQUAL "OWN")
    return()
  endif()
  if(ARGN)
    set(HEADERS ${ARGN})
  endif()
  unidle_reuse_headers(${TARGET} ${HEADERS})
endfunction()

function(unidle_module NAME)
  cmake_parse_arguments(ARG "HOT" "HEADERS;TEST_SHARDS;TEST_NIGHTLY" "USES;LINKS;TEST_USES;TEST_LABELS" ${ARGN})
  if(NOT ARG_HEADERS)
    set(ARG_HEADERS unidle_core_headers)
    if(ARG_HOT)
      set(ARG_HEADERS unidle_hot_headers)
    endif()
  endif()
  file(GLOB_RECURSE sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  set(fakes ${sources})
  list(FILTER fakes INCLUDE REGEX "^testing/")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$|^testing/|^main/|^fake_nvml/|^capi/")
  list(TRANSFORM ARG_USES PREPEND unidle_)
  list(TRANSFORM ARG_TEST_USES PREPEND unidle_)

  if(sources)
    add_library(unidle_${NAME} STATIC ${sources})
    target_link_libraries(unidle_${NAME} PUBLIC unidle_options ${ARG_USES} ${ARG_LINKS})
    unidle_module_headers(unidle_${NAME} ${ARG_HEADERS})
  else()
    add_library(unidle_${NAME} INTERFACE)
    target_link_libraries(unidle_${NAME} INTERFACE unidle_options ${ARG_USES} ${ARG_LINKS})
  endif()

  if(UNIDLE_TESTS)
    if(fakes)
      add_library(unidle_${NAME}_testing STATIC ${fakes})
      target_link_libraries(unidle_${NAME}_testing PUBLIC unidle_${NAME})
      unidle_module_headers(unidle_${NAME}_testing ${ARG_HEADERS} unidle_core_headers)
    endif()
    if(tests)
      add_executable(unidle_${NAME}_test ${tests})
      set_target_properties(unidle_${NAME}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
      target_link_libraries(unidle_${NAME}_test PRIVATE unidle_${NAME} ${ARG_TEST_USES} GTest::gmock_main)
      unidle_module_headers(unidle_${NAME}_test ${ARG_HEADERS} unidle_test_headers)
      if(UNIDLE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # what a sanitizer adds hides that std::regex is set
        target_compile_options(unidle_${NAME}_test PRIVATE -Wno-maybe-uninitialized)
      endif()
      if(fakes)
        target_link_libraries(unidle_${NAME}_test PRIVATE unidle_${NAME}_testing)
      endif()
      if(NOT ARG_TEST_LABELS)
        set(ARG_TEST_LABELS quick)
      endif()
      unidle_unit_tests(${NAME} unidle_${NAME}_test LABELS ${ARG_TEST_LABELS} SHARDS ${ARG_TEST_SHARDS}
                        NIGHTLY ${ARG_TEST_NIGHTLY})
    endif()
  endif()
endfunction()

# unidle_write_registry(TARGET LIST NAMESPACE TYPE HEADER DECLARATIONS ENTRIES)
#
# Generates `NAMESPACE::all_<list>()`, which returns the entries in their order, as a source of the target. An explicit
# list rather than static registration: no initialisation order, and the linker cannot drop anything.
function(unidle_write_registry TARGET LIST NAMESPACE TYPE HEADER DECLARATIONS ENTRIES)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/all_${LIST}.cpp)
  file(CONFIGURE OUTPUT ${generated} CONTENT
"// Generated from the names of files.
#include \"${HEADER}\"

${DECLARATIONS}
namespace ${NAMESPACE} {
const std::vector<const ${TYPE}*>& all_${LIST}() {
  static const std::vector<const ${TYPE}*> kAll = {
${ENTRIES}  };
  return kAll;
}
}
" @ONLY)
  target_sources(${TARGET} PRIVATE ${generated})
endfunction()

# unidle_registry(TARGET FOLDER NAMESPACE TYPE HEADER)
#
# For one definition per file: FOLDER/x_y.cpp must define `const TYPE& NAMESPACE::FOLDER::x_y()`.
function(unidle_registry TARGET FOLDER NAMESPACE TYPE HEADER)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${FOLDER}/*.cpp)
  list(FILTER files EXCLUDE REGEX "_test\\.cpp$")
  list(SORT files)
  set(declarations "namespace ${NAMESPACE}::${FOLDER} {\n")
  set(entries "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    string(APPEND declarations "const ${TYPE}& ${name}();\n")
    string(APPEND entries "      &${FOLDER}::${name}(),\n")
  endforeach()
  unidle_write_registry(${TARGET} ${FOLDER} ${NAMESPACE} ${TYPE} ${HEADER} "${declarations}}\n" "${entries}")
endfunction()

# unidle_folder_registry(TARGET LIST NAMESPACE TYPE HEADER)
#
# For one definition per folder: x/x.cpp must define `const TYPE& NAMESPACE::x::x()`.
function(unidle_folder_registry TARGET LIST NAMESPACE TYPE HEADER)
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/*/*.cpp)
  list(SORT files)
  set(declarations "")
  set(entries "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    if(file STREQUAL "${name}/${name}.cpp")
      string(APPEND declarations "namespace ${NAMESPACE}::${name} {\nconst ${TYPE}& ${name}();\n}\n")
      string(APPEND entries "      &${name}::${name}(),\n")
    endif()
  endforeach()
  unidle_write_registry(${TARGET} ${LIST} ${NAMESPACE} ${TYPE} ${HEADER} "${declarations}" "${entries}")
endfunction()
