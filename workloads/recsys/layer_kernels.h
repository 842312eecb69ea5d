// The operations of a perceptron's layers other than products, on plain memory; single-threaded.
//
// Compiled for AVX2 with FMA; layer_kernels() says whether this processor has them.
#pragma once

#include <cstdint>

namespace unidle::workloads::recsys {

constexpr std::int64_t kPanel = 16;  // adjacent columns of a packed weight

/// Matrices [rows, columns] are row-major; columns % kLanes == 0.
struct LayerKernels {
  /// Packs the transposed weight [outputs, inputs] into consecutive panels [inputs, kPanel]; the last panel has only
  /// the whole kLanes that remain, padded with zeros. A product reads a panel sequentially.
  void (*pack)(std::int64_t outputs, std::int64_t inputs, const float* weight, float* panels);
  /// values = relu(values + bias).
  void (*activate)(std::int64_t rows, std::int64_t columns, const float* bias, float* values);
  /// gradient = 0 where values are 0; sums [columns] += the result's column sums.
  void (*activate_backward)(std::int64_t rows, std::int64_t columns, const float* values, float* gradient, float* sums);
  /// to += from, for any count.
  void (*add)(std::int64_t count, const float* from, float* to);
};

/// nullptr when the processor lacks AVX2 or FMA; torch's operations are then used.
const LayerKernels* layer_kernels();

}  // namespace unidle::workloads::recsys
