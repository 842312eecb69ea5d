// Reads and writes tensors as numpy files.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>

namespace unidle::workloads {

/// Replaces `path` atomically. `tensor`: of bytes, int64 or float32, on the host, with at least one axis.
void write_npy(const std::filesystem::path& path, const at::Tensor& tensor);

/// Reads the whole array. Throws kInput naming the file when it is not a .npy of bytes, int64 or float32.
at::Tensor read_npy(const std::filesystem::path& path);

}  // namespace unidle::workloads
