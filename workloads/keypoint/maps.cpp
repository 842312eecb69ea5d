#include "workloads/keypoint/maps.h"

namespace unidle::workloads::keypoint {

namespace {

constexpr double kSigmaCells = 2;
constexpr double kFarWeight = 0.01;

/// Pixels -> cells; integers are the centres of cells.
at::Tensor to_cells(const at::Tensor& points) { return points / kStride - 0.5; }

/// [n, points, 2, h, w] at cell numbers [n, points] -> [n, points, 2]
at::Tensor at_cells(const at::Tensor& offsets, const at::Tensor& cells) {
  const at::Tensor index = cells.unsqueeze(2).unsqueeze(3).expand({-1, -1, 2, 1});
  return offsets.flatten(3).gather(3, index).squeeze(3);
}

at::Tensor mean_of_seen(const at::Tensor& values, const at::Tensor& visible) {
  return (values * visible).sum() / visible.sum().clamp_min(1);
}

}  // namespace

at::Tensor heat_maps(const at::Tensor& points, std::int64_t height, std::int64_t width) {
  const at::Tensor cells = to_cells(points);
  const at::Tensor x = at::arange(width, points.options()) - cells.select(2, 0).unsqueeze(2);   // [n, points, w]
  const at::Tensor y = at::arange(height, points.options()) - cells.select(2, 1).unsqueeze(2);  // [n, points, h]
  constexpr double kScale = -1 / (2 * kSigmaCells * kSigmaCells);
  return (y.square() * kScale).exp().unsqueeze(3) * (x.square() * kScale).exp().unsqueeze(2);
}

at::Tensor map_loss(const Maps& maps, const at::Tensor& points, const at::Tensor& visible) {
  const std::int64_t height = maps.heat.size(2);
  const std::int64_t width = maps.heat.size(3);
  const at::Tensor wanted = heat_maps(points, height, width);
  const at::Tensor weight = wanted + kFarWeight;
  const at::Tensor error = (maps.heat.to(at::kFloat) - wanted).square() * weight;
  const at::Tensor heat = mean_of_seen(error.sum({2, 3}) / weight.sum({2, 3}), visible);

  const at::Tensor cells = to_cells(points);
  const at::Tensor column = cells.select(2, 0).round().clamp(0, width - 1);
  const at::Tensor row = cells.select(2, 1).round().clamp(0, height - 1);
  const at::Tensor offset = at_cells(maps.offsets.to(at::kFloat), (row * width + column).to(at::kLong));
  const at::Tensor miss = at::smooth_l1_loss(offset, cells - at::stack({column, row}, 2), at::Reduction::None).sum(2);
  return heat + mean_of_seen(miss, visible);
}

at::Tensor predicted_points(const Maps& maps) {
  const std::int64_t width = maps.heat.size(3);
  const at::Tensor cells = maps.heat.flatten(2).argmax(2);
  const at::Tensor place = at::stack({cells % width, cells.div(width, "floor")}, 2).to(at::kFloat);
  return (place + at_cells(maps.offsets.to(at::kFloat), cells) + 0.5) * kStride;
}

}  // namespace unidle::workloads::keypoint
