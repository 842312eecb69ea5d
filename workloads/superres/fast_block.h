// The ConvNeXt block on a CPU, as one operation with its own backward pass.
#pragma once

#include <ATen/ATen.h>

namespace unidle::workloads::superres {

struct BlockWeights {
  at::Tensor depthwise;  // [w, 1, 7, 7]
  at::Tensor depthwise_bias;
  at::Tensor norm;
  at::Tensor norm_bias;
  at::Tensor expand;  // [4w, w]
  at::Tensor expand_bias;
  at::Tensor project;  // [w, 4w]
  at::Tensor project_bias;
  at::Tensor gamma;  // [1]
};

/// Whether the input is supported: fp32 on a CPU with AVX2, channels-last, outside autocast, width a multiple of 8.
bool fast_block_fits(const at::Tensor& x, const BlockWeights& weights);

/// x + gamma * project(gelu(expand(norm(depthwise(x))))), equal to torch's operations up to rounding (GELU within
/// 2e-7). It is faster because a thread processes some rows of pictures completely while they are in its cache, with
/// one barrier in the forward pass and two in the backward pass; the depth-wise convolution and LayerNorm are one pass,
/// GELU stores its slope so that the backward pass needs no second exponential, and LayerNorm's affine part, gamma and
/// the biases are folded into weights and neighbouring passes. REQUIRES: fast_block_fits().
at::Tensor fast_block(const at::Tensor& x, const BlockWeights& weights);

}  // namespace unidle::workloads::superres
