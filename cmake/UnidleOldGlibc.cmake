# Programs and libraries that also run on glibc 2.28 and libstdc++ 8, the oldest ones that PyTorch supports. They
# get our own version of the functions that are newer, and depend on the libraries that were parts of glibc's
# own only from 2.34 on. tools/old_symbols.py does the rest, in the copies of a wheel: there newer versions of
# functions become old ones.
set(old_glibc ${CMAKE_SOURCE_DIR}/src/unidle/base/old_glibc)
set(UNIDLE_OLD_GLIBC OFF)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$"
   AND NOT UNIDLE_SANITIZE AND NOT UNIDLE_FUZZ)
  set(UNIDLE_OLD_GLIBC ON)
  add_library(unidle_old_functions OBJECT ${old_glibc}/functions.c)
  add_library(unidle_old_startup OBJECT ${old_glibc}/startup.c)
  add_library(unidle_old_functions_hidden OBJECT ${old_glibc}/functions.c)
  set_target_properties(unidle_old_functions_hidden PROPERTIES C_VISIBILITY_PRESET hidden)
endif()

# unidle_serves_old_glibc(TARGET KIND), KIND being
#   PROGRAM  brings its libstdc++ along; the libraries beside it use its functions
#   LIBRARY  is loaded into programs of others, with their libstdc++; the libraries beside it use its functions
#   ALONE    the same, and keeps its functions to itself
function(unidle_serves_old_glibc TARGET KIND)
  if(NOT UNIDLE_OLD_GLIBC)
    return()
  endif()
  if(KIND STREQUAL "ALONE")
    target_sources(${TARGET} PRIVATE $<TARGET_OBJECTS:unidle_old_functions_hidden>)
    target_link_options(${TARGET} PRIVATE LINKER:--exclude-libs,libstdc++.a)
  else()
    target_sources(${TARGET} PRIVATE $<TARGET_OBJECTS:unidle_old_functions>)
  endif()
  if(KIND STREQUAL "PROGRAM")
    target_sources(${TARGET} PRIVATE $<TARGET_OBJECTS:unidle_old_startup>)
  else()
    target_link_options(${TARGET} PRIVATE -static-libstdc++)
  endif()
  target_link_options(${TARGET} PRIVATE LINKER:--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -l:libutil.so.1
                      -l:librt.so.1 LINKER:--pop-state)
endfunction()
