// Light x4 super-resolution: ConvNeXt blocks (Liu et al. 2022) between a small head and two PixelShuffle stages.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace unidle::workloads::superres {

constexpr std::int64_t kScale = 4;

struct ModelOptions {
  std::int64_t width = 32;  // channels, even
  std::int64_t depth = 4;   // blocks
  bool channels_last = false;
  bool recompute_blocks = false;  // gradient checkpointing
};

/// Weight and bias, initialised uniformly within 1/sqrt(fan in), torch's default for convolutions and linear layers.
struct Affine {
  at::Tensor weight;
  at::Tensor bias;
};

/// Depth-wise 7x7, LayerNorm over channels, MLP x4 with GELU, one learned scale, residual.
class Block : public torch::nn::Module {
 public:
  Block(std::int64_t width, bool channels_last);
  at::Tensor forward(const at::Tensor& x);

 private:
  at::Tensor plain(const at::Tensor& x) const;

  std::int64_t width_;
  bool channels_last_;
  Affine depthwise_;
  Affine norm_;
  Affine expand_;
  Affine project_;
  at::Tensor gamma_;
};

/// Names of parameters and buffers match bench/peers/superres.py. [n, 3, h, w] in 0..1 -> [n, 3, 4h, 4w]. 60,526
/// parameters at width 32 and depth 4.
class Model : public torch::nn::Module {
 public:
  explicit Model(const ModelOptions& options);
  at::Tensor forward(const at::Tensor& low);

  const ModelOptions& options() const { return options_; }
  /// Read back from the weights.
  std::int64_t width() const { return head_pointwise_.weight.size(0); }
  std::int64_t depth() const { return static_cast<std::int64_t>(blocks_.size()); }

 private:
  at::Tensor head(const at::Tensor& low);

  ModelOptions options_;
  Affine head_depthwise_;
  Affine head_pointwise_;
  Affine head_norm_;
  at::Tensor running_mean_;
  at::Tensor running_variance_;
  at::Tensor batches_seen_;
  std::vector<std::shared_ptr<Block>> blocks_;
  Affine up1_;
  Affine up2_;
};

}  // namespace unidle::workloads::superres
