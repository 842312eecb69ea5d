// The element-wise part of an LSTM, on plain memory; single-threaded.
//
// Compiled for AVX2 with FMA; lstm_kernels() says whether they are the best that this processor has.
#pragma once

#include <cstdint>

#include "workloads/common/products.h"

namespace unidle::workloads::timeseries {

/// One day of a layer, for `rows` samples of `width` units; width % kLanes == 0. All arrays are row-major. Gates are
/// [rows, 4 width] in torch's order: input, forget, candidate, output.
/// [rows, 4 width] in torch's order: input, forget, candidate, output.
struct LstmDay {
  std::int64_t rows;
  std::int64_t width;
  const float* bias;    // [4 width], of the gates
  float* gates;         // in: before activation, without bias; out: after activation
  const float* before;  // the cells of the previous day; null on the first day
  float* cells;
  float* tanh_cells;  // tanh(cells)
  float* output;
};

/// The same day in the backward pass.
struct LstmDayBack {
  std::int64_t rows;
  std::int64_t width;
  const float* gates;  // after activation
  const float* before;
  const float* tanh_cells;
  const float* from_above;  // gradient of the output
  const float* from_after;  // the same gradient, from the next day
  float* cell_gradient;     // in: from the next day; out: for the previous day
  std::int64_t gate_gradient_row;
  float* gate_gradient;  // before activation; gate_gradient_row is the row stride
  float* bias_gradient;  // [4 width]; sums over the rows are added
};

struct LstmKernels {
  void (*forward)(const LstmDay& day);
  void (*backward)(const LstmDayBack& day);
};

/// nullptr when the processor lacks AVX2 or FMA, or has wider units (AVX-512, except AMD's): torch's operations are
/// then used.
const LstmKernels* lstm_kernels();

}  // namespace unidle::workloads::timeseries
