// How kernels are watched from within: what the CUDA driver loads into a program.
#pragma once

#include <filesystem>

namespace unidle::trace {

/// The value of CUDA_INJECTION64_PATH with which a program has its kernels watched, out of the folder of a program of
/// ours. Throws kUsage when another tool is injected already, which goes first, and kMissing when the library was not
/// built.
std::filesystem::path library_to_inject(const std::filesystem::path& programs);

}  // namespace unidle::trace
