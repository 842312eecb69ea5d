# Writes a C++ source with the commit of SOURCE: cmake -DSOURCE=FOLDER -DGENERATED=FILE.cpp -DBUILD=TEXT -P this.
# An archive of `git archive` has no repository: there git has put the commit into commit.txt.
if(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} describe --always --abbrev=12 --dirty --exclude=*
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit)
  file(STRINGS ${SOURCE}/cmake/commit.txt commit)
endif()
if(NOT commit MATCHES "^[0-9a-f]+(-dirty)?$")
  set(commit unknown)
endif()
set(text "// Generated.
#include \"unidle/base/version.h\"

namespace unidle {
const char* const kBuild = \"commit ${commit}, ${BUILD}\";
}
")
set(before "")
if(EXISTS ${GENERATED})
  file(READ ${GENERATED} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${GENERATED} "${text}")
endif()
