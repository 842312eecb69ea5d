# The library `unidle_commit`: from which commit, and how, the programs were built. Looked up at every build;
# written, and thereby linked anew, only if it has changed.
set(generated ${CMAKE_BINARY_DIR}/generated/commit.cpp)
add_custom_target(unidle_find_commit
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DGENERATED=${generated}
          "-DBUILD=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}"
          -P ${CMAKE_SOURCE_DIR}/cmake/FindCommit.cmake
  BYPRODUCTS ${generated} COMMENT "Looking up the commit" VERBATIM)
add_library(unidle_commit STATIC ${generated})
target_link_libraries(unidle_commit PRIVATE unidle_options)
add_dependencies(unidle_commit unidle_find_commit)
