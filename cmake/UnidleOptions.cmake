# Language level, warnings, sanitizers, ccache and output folders for the whole tree.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
# Most modules run once or once a second: -O1 compiles a quarter faster. Code that runs for each event,
# sample, log line or step is in modules marked HOT, and tests are not optimised at all. Line numbers are left
# to the dev preset.
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
set(UNIDLE_HOT_OPTIONS "$<$<CONFIG:Release>:-O2>")
set(UNIDLE_TEST_OPTIONS "$<$<CONFIG:Release>:-O0>")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Most of a file's compile time is spent on headers that it shares with its neighbours: eight files at once
# take a third of the time. A change then compiles eight files, so the dev preset does without.
option(UNIDLE_UNITY "Compile several files at once" OFF)
if(UNIDLE_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # a class private to a file is none to a compiler that sees it included
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endif()

find_program(UNIDLE_CCACHE ccache)
if(UNIDLE_CCACHE)
  # Sloppiness: needed for cache hits of files with a precompiled header. Base folder: shared by checkouts and
  # build folders.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
               CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${UNIDLE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()

find_program(UNIDLE_LLD ld.lld)
if(UNIDLE_LLD AND NOT CMAKE_CROSSCOMPILING)  # GCC for another machine looks for a linker with that machine's name
  add_link_options(-fuse-ld=lld)
endif()

# Makes a program find the libraries beside it, wherever it is put (`./dev bundle`), and their dependencies too: that
# is the older kind of path, which applies to both. KIND is PROGRAM, or LIBRARY for one that is loaded into programs
# of others and takes their libstdc++.
function(unidle_relocatable program KIND)
  set(path "$ORIGIN/../lib")
  if(KIND STREQUAL "PROGRAM")
    string(APPEND path ":$ORIGIN/../lib/programs")
  endif()
  set_target_properties(${program} PROPERTIES BUILD_RPATH "${path}" INSTALL_RPATH "${path}")
  target_link_options(${program} PRIVATE LINKER:--disable-new-dtags)
endfunction()

# Used only by our own targets, so that headers of other projects are not checked.
add_library(unidle_options INTERFACE)
target_compile_options(unidle_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
# The same figures on every machine: Arm's compilers would round a product and the sum with it once, not twice.
target_compile_options(unidle_options INTERFACE -ffp-contract=off)
if(UNIDLE_WERROR)
  target_compile_options(unidle_options INTERFACE -Werror)
endif()
target_include_directories(unidle_options INTERFACE ${CMAKE_SOURCE_DIR}/src)

# A fuzzer sees its coverage only in instrumented code.
if(UNIDLE_FUZZ AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(UNIDLE_SANITIZE)
  add_compile_options(-fsanitize=${UNIDLE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${UNIDLE_SANITIZE})
  if(NOT UNIDLE_FUZZ)
    # Lines and functions: all that a report names, at half the time and size of everything.
    add_compile_options(-g1)
  endif()
  if(UNIDLE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
  endif()
endif()
