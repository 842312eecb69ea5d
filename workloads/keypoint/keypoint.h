// The workload `keypoint`: locates two points in pictures with four channels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "unidle/train/workload.h"

namespace unidle::workloads::keypoint {

const train::WorkloadKind& keypoint();

struct PictureRequest {
  std::int64_t height = 256;  // the width is twice that; a multiple of 32
  std::int64_t samples = 0;   // for training, plus a quarter as many for validation; 0: 256
  std::uint64_t seed = 1;
};

/// Generates pictures in `folder`/{train,validation}, in shards of 64: image_0.npy (uint8 [n, height, width, 4]),
/// points_0.npy (float32 [n, 2, 2], x and y in pixels), visible_0.npy (float32 [n, 2], 1 or 0). Pictures are waves and
/// noise with a disk and a ring as the two points, a tenth of which is missing, and with spots as distractors. Atomic.
/// Returns a description of the result.
std::string prepare_pictures(const std::filesystem::path& folder, const PictureRequest& request);

}  // namespace unidle::workloads::keypoint
