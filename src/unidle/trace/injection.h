// The library that the CUDA driver loads into a program to watch its kernels.
#pragma once

#include <filesystem>

namespace unidle::trace {

/// Returns the value of CUDA_INJECTION64_PATH that has a program's kernels watched; `programs` is the folder of our
/// programs. Throws kUsage when another tool is already injected, and kMissing when the library was not built.
std::filesystem::path library_to_inject(const std::filesystem::path& programs);

}  // namespace unidle::trace
