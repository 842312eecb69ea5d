# Precompiled headers: parsing fmt, json and gmock is most of the work of a small file.
#
# unidle_precompiled_headers(NAME HEADER LINKS target...)  makes one, shared by all targets that
# unidle_reuse_headers(TARGET NAME) names.

# What ccache needs to know files that use a precompiled header.
function(unidle_cache_with_headers TARGET)
  if(UNIDLE_CCACHE)
    set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
                 ${UNIDLE_CCACHE})
    set_target_properties(${TARGET} PROPERTIES CXX_COMPILER_LAUNCHER "${launcher}")
    target_compile_options(${TARGET} PRIVATE -fpch-preprocess)
  endif()
endfunction()

function(unidle_precompiled_headers NAME HEADER)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  add_library(${NAME} STATIC ${CMAKE_SOURCE_DIR}/cmake/precompiled/empty.cpp)
  target_link_libraries(${NAME} PRIVATE unidle_options fmt::fmt spdlog::spdlog Threads::Threads nlohmann_json::nlohmann_json
                        ${ARG_LINKS})
  target_precompile_headers(${NAME} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/precompiled/${HEADER})
  unidle_cache_with_headers(${NAME})
  target_compile_options(${NAME} PRIVATE -fPIC)
endfunction()

function(unidle_reuse_headers TARGET NAME)
  target_precompile_headers(${TARGET} REUSE_FROM ${NAME})
  # The compiler takes them only where the code is of the same kind; programs would be -fPIE.
  target_compile_options(${TARGET} PRIVATE -fPIC)
  unidle_cache_with_headers(${TARGET})
endfunction()

unidle_precompiled_headers(unidle_core_headers core_headers.h)
unidle_precompiled_headers(unidle_cli_headers cli_headers.h LINKS CLI11::CLI11)
if(UNIDLE_TESTS)
  unidle_precompiled_headers(unidle_test_headers test_headers.h LINKS GTest::gmock)
endif()
