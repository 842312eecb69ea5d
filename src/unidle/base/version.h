// The version of all programs and packages. A test checks that CMakeLists.txt and python/unidle have the same one.
#pragma once

namespace unidle {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace unidle
