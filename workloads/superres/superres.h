// The workload `superres`: x4 super-resolution of photographs.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <string>

#include "unidle/train/workload.h"

namespace unidle::workloads::superres {

const train::WorkloadKind& superres();

/// Peak signal-to-noise ratio in dB of the luma (ITU-R BT.601, the custom in super-resolution) of two pictures
/// [n, 3, h, w]; `picture` is clamped to 0..1 first. A double, on their device.
at::Tensor psnr(const at::Tensor& picture, const at::Tensor& reference);

/// Cuts photographs into tiles and writes them, with low-resolution partners (antialiased bicubic, 1/4), to
/// folder/{train,validation}/{high,low}. All or nothing: made beside `folder` and renamed. `source` is a folder of
/// pictures, of which every tenth one by name is for validation; empty: the colour photographs of scikit-image. Returns
/// what was made. Throws kMissing when scikit-image is not found, kInput for a folder of fewer than two pictures.
std::string prepare_photographs(const std::filesystem::path& folder, const std::string& source = "");

}  // namespace unidle::workloads::superres
