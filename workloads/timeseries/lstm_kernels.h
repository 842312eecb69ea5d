// The element-wise half of an LSTM, on plain memory; single-threaded each.
//
// Compiled for AVX2 with FMA; lstm_kernels() says whether they are the best that this processor has.
#pragma once

#include <cstdint>

#include "workloads/common/products.h"

namespace unidle::workloads::timeseries {

/// One layer at one day, for `rows` samples of `width` units; width % kLanes == 0. All lie row by row. Gates are
/// [rows, 4 width] in torch's order: input, forget, candidate, output.
struct LstmDay {
  std::int64_t rows;
  std::int64_t width;
  const float* bias;    // [4 width], of the gates
  float* gates;         // without bias, before their activation; what they are after it, in the same place
  const float* before;  // the cells of the day before; null on the first day
  float* cells;
  float* bent;  // tanh(cells)
  float* output;
};

/// The same day of the backward pass.
struct LstmDayBack {
  std::int64_t rows;
  std::int64_t width;
  const float* gates;  // after their activation
  const float* before;
  const float* bent;
  const float* from_above;  // gradient of the output
  const float* from_after;  // the same, as the next day wants it
  float* cell_gradient;     // from the next day; for the day before
  std::int64_t gate_gradient_row;
  float* gate_gradient;  // before their activation; rows are that far apart
  float* bias_gradient;  // [4 width]; the rows are added to it
};

struct LstmKernels {
  void (*forward)(const LstmDay& day);
  void (*backward)(const LstmDayBack& day);
};

/// nullptr where the processor has neither AVX2 nor FMA, or has wider units (AVX-512 of others than AMD): torch's own
/// operations do the work there.
const LstmKernels* lstm_kernels();

}  // namespace unidle::workloads::timeseries
