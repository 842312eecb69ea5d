// The workload `superres`: x4 super-resolution of photographs.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <string>

#include "unidle/train/workload.h"

namespace unidle::workloads::superres {

const train::WorkloadKind& superres();

/// Peak signal-to-noise ratio in dB of the luma (ITU-R BT.601, as is usual in super-resolution) of two pictures [n, 3,
/// h, w]; `picture` is first clamped to 0..1. A double, on their device.
at::Tensor psnr(const at::Tensor& picture, const at::Tensor& reference);

/// Cuts photographs into tiles and writes them, with low-resolution versions (antialiased bicubic, 1/4), to
/// folder/{train,validation}/{high,low}. Atomic: written beside `folder` and renamed. `source` is a folder of pictures,
/// of which every tenth by name is for validation; empty: the colour photographs of scikit-image. Returns a description
/// of the result. Throws kMissing when scikit-image is not found, kInput for a folder of fewer than two pictures.
std::string prepare_photographs(const std::filesystem::path& folder, const std::string& source = "");

}  // namespace unidle::workloads::superres
