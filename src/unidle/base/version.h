// The version of all programs and packages: that of python/unidle/_version.py.
#pragma once

namespace unidle {

extern const char* const kVersion;

/// "commit 0123456789ab, GNU 12.2.0, Release". Only in the programs: a new commit links nothing else anew.
extern const char* const kBuild;

}  // namespace unidle
