// What a perceptron's layers do besides their products, on plain memory; single-threaded each.
//
// Compiled for AVX2 with FMA; layer_kernels() says whether this processor has them.
#pragma once

#include <cstdint>

namespace unidle::workloads::recsys {

constexpr std::int64_t kPanel = 16;  // columns of a weight that lie together

/// Matrices [rows, columns] lie row by row; columns % kLanes == 0.
struct LayerKernels {
  /// The transposed weight [outputs, inputs] as panels [inputs, kPanel], one after the other; the last panel has as
  /// many whole kLanes as are left, filled with zeros. A product reads a panel from one end to the other.
  void (*pack)(std::int64_t outputs, std::int64_t inputs, const float* weight, float* panels);
  /// values = relu(values + bias).
  void (*activate)(std::int64_t rows, std::int64_t columns, const float* bias, float* values);
  /// gradient = 0 where values are; sums [columns] += the result's column sums.
  void (*activate_backward)(std::int64_t rows, std::int64_t columns, const float* values, float* gradient, float* sums);
  /// to += from, of any count.
  void (*add)(std::int64_t count, const float* from, float* to);
};

/// nullptr where the processor has neither AVX2 nor FMA; torch's own operations do the work there.
const LayerKernels* layer_kernels();

}  // namespace unidle::workloads::recsys
