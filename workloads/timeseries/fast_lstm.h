// An LSTM layer on a CPU, as one operation with its own backward pass.
#pragma once

#include <ATen/ATen.h>

namespace unidle::workloads::timeseries {

/// The weights as in torch::nn::LSTM; w units, f inputs.
struct LstmWeights {
  at::Tensor input;      // [4w, f]
  at::Tensor recurrent;  // [4w, w]
  at::Tensor input_bias;
  at::Tensor recurrent_bias;
};

/// Whether the input is supported: fp32 on a CPU for which lstm_kernels() are the fastest, outside autocast, width a
/// multiple of kPanel, 16.
bool fast_lstm_fits(const at::Tensor& days, const LstmWeights& weights);

/// days [length, n, f] -> outputs [length, n, w], starting from a zero state; equals torch::nn::LSTM up to rounding
/// (activations within 2e-7). It is faster because a thread processes its samples through all days and back, so that
/// threads synchronize once per pass; a day's gates and their gradients are used while they are in the cache; weights
/// are packed for the products once per pass. REQUIRES: fast_lstm_fits().
at::Tensor fast_lstm(const at::Tensor& days, const LstmWeights& weights);

}  // namespace unidle::workloads::timeseries
