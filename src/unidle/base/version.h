// The version of all programs and packages; CMakeLists.txt and python/unidle have the same one, which a test holds.
#pragma once

namespace unidle {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace unidle
