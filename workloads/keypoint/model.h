// A light high-resolution network (Sun et al. 2019) with a feature pyramid (Lin et al. 2017).
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace unidle::workloads::keypoint {

constexpr std::int64_t kChannels = 4;
constexpr std::int64_t kPoints = 2;
constexpr std::int64_t kStride = 4;  // pixels per cell of the heat maps

/// Convolution without bias, batch normalisation and, optionally, ReLU.
class ConvNorm : public torch::nn::Module {
 public:
  ConvNorm(std::int64_t from, std::int64_t to, std::int64_t kernel, std::int64_t stride = 1, bool relu = true);
  at::Tensor forward(const at::Tensor& x);

 private:
  torch::nn::Conv2d conv_;
  torch::nn::BatchNorm2d norm_;
  bool relu_;
};

/// Two 3x3 convolutions and a residual.
class Block : public torch::nn::Module {
 public:
  explicit Block(std::int64_t width);
  at::Tensor forward(const at::Tensor& x);

 private:
  std::shared_ptr<ConvNorm> first_;
  std::shared_ptr<ConvNorm> second_;
};

struct Maps {
  at::Tensor heat;     // [n, points, h, w]
  at::Tensor offsets;  // [n, points, 2, h, w]: x and y, in cells, relative to the cell's centre
};

/// [n, 4, 4h, 4w] -> maps of [h, w]; both sides of the picture are multiples of 32. Four branches of width, 2 width, 4
/// width and 8 width channels at 1/4, 1/8, 1/16 and 1/32 of the picture, fused once in both directions, and a pyramid
/// of 4 width channels. 3,468,614 parameters at width 32. Parameters have the same names as in the Python model.
class Model : public torch::nn::Module {
 public:
  explicit Model(std::int64_t width);
  Maps forward(const at::Tensor& picture);
  /// Converts the convolutions' weights to channels-last.
  void use_channels_last();
  /// Read back from the layers.
  std::int64_t width() const;

 private:
  static constexpr std::size_t kBranches = 4;
  using Features = std::array<at::Tensor, kBranches>;

  void add_branches(std::int64_t width);
  void add_fusion(std::int64_t width);
  void add_pyramid(std::int64_t width);
  Features branches(const at::Tensor& picture);
  Features fuse(const Features& x);
  at::Tensor pyramid(const Features& x);

  std::array<std::shared_ptr<ConvNorm>, 2> stem_;
  std::array<std::vector<std::shared_ptr<Block>>, kBranches> blocks_;
  std::array<std::shared_ptr<ConvNorm>, kBranches - 1> down_;                        // to the next branch
  std::array<std::array<std::shared_ptr<ConvNorm>, kBranches>, kBranches> fuse_up_;  // [to][from]
  std::array<std::shared_ptr<ConvNorm>, kBranches - 1> fuse_down_;
  std::vector<torch::nn::Conv2d> lateral_;
  std::shared_ptr<ConvNorm> smooth_;
  std::shared_ptr<ConvNorm> heat_hidden_;
  std::shared_ptr<ConvNorm> offset_hidden_;
  torch::nn::Conv2d heat_{nullptr};
  torch::nn::Conv2d offset_{nullptr};
};

}  // namespace unidle::workloads::keypoint
