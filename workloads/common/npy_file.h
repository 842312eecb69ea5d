// Tensors as numpy's files.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>

namespace unidle::workloads {

/// Replaces `path` in one move. `tensor`: of bytes, int64 or float32, on the host, with at least one axis.
void write_npy(const std::filesystem::path& path, const at::Tensor& tensor);

/// The whole array. Throws kInput naming the file for what is no .npy of bytes, int64 or float32.
at::Tensor read_npy(const std::filesystem::path& path);

}  // namespace unidle::workloads
