// Heat maps and offsets: what they should be, how far a model is from it, and the points that they tell.
#pragma once

#include <ATen/ATen.h>

#include "workloads/keypoint/model.h"

namespace unidle::workloads::keypoint {

/// `points`: [n, points, 2], x and y in pixels of the picture. [n, points, h, w]: for each a Gaussian of 2 cells around
/// it, 1 at its top.
at::Tensor heat_maps(const at::Tensor& points, std::int64_t height, std::int64_t width);

/// The heat maps' squared errors, weighted by the map itself (0.01 far from a point), plus the absolute errors of the
/// offsets in the points' cells (smooth below 1 cell); means over the points that are seen. `visible`: [n, points], 1
/// or 0. A scalar, 0 when nothing is seen.
at::Tensor map_loss(const Maps& maps, const at::Tensor& points, const at::Tensor& visible);

/// [n, points, 2] in pixels: the hottest cell of each map and the offset there.
at::Tensor told_points(const Maps& maps);

}  // namespace unidle::workloads::keypoint
