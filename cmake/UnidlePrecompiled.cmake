# Precompiled headers: parsing fmt, json and gmock is most of the work of a small file.
#
# unidle_precompiled_headers(NAME HEADER [LINKS target...] [OPTIONS option...]) creates one, shared by all targets
# passed to unidle_reuse_headers(TARGET NAME); these are compiled with the same options.

# ccache needs this to know the contents of a precompiled header.
set(UNIDLE_PRECOMPILED_OPTIONS -fpch-preprocess)

function(unidle_precompiled_headers NAME HEADER)
  cmake_parse_arguments(ARG "" "" "LINKS;OPTIONS" ${ARGN})
  add_library(${NAME} STATIC ${CMAKE_SOURCE_DIR}/cmake/precompiled/empty.cpp)
  target_link_libraries(${NAME} PRIVATE unidle_options fmt::fmt spdlog::spdlog Threads::Threads nlohmann_json::nlohmann_json
                        ${ARG_LINKS})
  target_precompile_headers(${NAME} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/precompiled/${HEADER})
  target_compile_options(${NAME} PRIVATE -fPIC ${UNIDLE_PRECOMPILED_OPTIONS} ${ARG_OPTIONS})
  set_target_properties(${NAME} PROPERTIES UNIDLE_HEADER_OPTIONS "${ARG_OPTIONS}")
endfunction()

function(unidle_reuse_headers TARGET NAME)
  target_precompile_headers(${TARGET} REUSE_FROM ${NAME})
  # The compiler uses them only for code of the same kind; programs would be -fPIE.
  get_target_property(options ${NAME} UNIDLE_HEADER_OPTIONS)
  target_compile_options(${TARGET} PRIVATE -fPIC ${UNIDLE_PRECOMPILED_OPTIONS} ${options})
endfunction()

unidle_precompiled_headers(unidle_core_headers core_headers.h)
unidle_precompiled_headers(unidle_hot_headers core_headers.h OPTIONS ${UNIDLE_HOT_OPTIONS})
unidle_precompiled_headers(unidle_cli_headers cli_headers.h LINKS CLI11::CLI11)
if(UNIDLE_TESTS)
  unidle_precompiled_headers(unidle_test_headers test_headers.h LINKS GTest::gmock OPTIONS ${UNIDLE_TEST_OPTIONS})
endif()
