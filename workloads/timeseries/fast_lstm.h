// A layer of an LSTM on a CPU, as one operation with its own backward pass.
#pragma once

#include <ATen/ATen.h>

namespace unidle::workloads::timeseries {

/// As torch::nn::LSTM has them; w units, f inputs.
struct LstmWeights {
  at::Tensor input;      // [4w, f]
  at::Tensor recurrent;  // [4w, w]
  at::Tensor input_bias;
  at::Tensor recurrent_bias;
};

/// fp32 on a CPU for which lstm_kernels() are the best, outside autocast, width a multiple of kPanel, 16.
bool fast_lstm_fits(const at::Tensor& days, const LstmWeights& weights);

/// days [length, n, f] -> outputs [length, n, w], from a state of zeros: what torch::nn::LSTM gives, within rounding
/// (activations within 2e-7). What it saves: a thread takes its samples through all days and back, so that threads meet
/// once a pass; a day's gates and their gradient are used while they are in the cache; weights are put into the order
/// that the products read them in once a pass. REQUIRES: fast_lstm_fits().
at::Tensor fast_lstm(const at::Tensor& days, const LstmWeights& weights);

}  // namespace unidle::workloads::timeseries
