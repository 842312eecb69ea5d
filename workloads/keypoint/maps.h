// Heat maps and offsets: the targets, the loss, and the points they predict.
#pragma once

#include <ATen/ATen.h>

#include "workloads/keypoint/model.h"

namespace unidle::workloads::keypoint {

/// `points`: [n, points, 2], x and y in pixels of the picture. Returns [n, points, h, w]: for each point a Gaussian
/// with sigma 2 cells around it, 1 at its peak.
at::Tensor heat_maps(const at::Tensor& points, std::int64_t height, std::int64_t width);

/// The heat maps' squared errors, weighted by the map itself (0.01 far from a point), plus the absolute errors of the
/// offsets in the points' cells (smooth below 1 cell); means over the visible points. `visible`: [n, points], 1 or 0. A
/// scalar, 0 when no point is visible.
at::Tensor map_loss(const Maps& maps, const at::Tensor& points, const at::Tensor& visible);

/// [n, points, 2] in pixels: the hottest cell of each map plus its offset.
at::Tensor predicted_points(const Maps& maps);

}  // namespace unidle::workloads::keypoint
