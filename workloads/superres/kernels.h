// Loops of the ConvNeXt block over rows of channels-last pictures, on plain memory; single-threaded.
//
// Compiled for AVX2 with FMA; kernels() says whether this processor has them.
#pragma once

#include <cstdint>

#include "workloads/common/products.h"

namespace unidle::workloads::superres {

constexpr std::int64_t kTaps = 7;            // side of the depth-wise kernel
constexpr std::int64_t kBorder = kTaps / 2;  // zeros around a picture

/// Pictures [n, height, width, channels]; padded ones have kBorder zeros on all four sides. channels % kLanes == 0.
struct Shape {
  std::int64_t height;
  std::int64_t width;
  std::int64_t channels;
};

/// Each processes rows `begin` to `end` of the n * height rows, or of the pixels where stated.
struct Kernels {
  /// Copies rows into the padded picture.
  void (*pad)(const Shape& shape, const float* in, float* padded, std::int64_t begin, std::int64_t end);

  /// out = depth-wise 7x7 of padded + bias, then LayerNorm without its affine part. weights: [49, channels].
  void (*convolve_normalise)(const Shape& shape, const float* padded, const float* weights, const float* bias,
                             float epsilon, float* out, float* inverse_deviation, std::int64_t begin, std::int64_t end);

  /// out = residual + depth-wise 7x7 of padded.
  void (*convolve_add)(const Shape& shape, const float* padded, const float* weights, const float* residual, float* out,
                       std::int64_t begin, std::int64_t end);

  /// Gradient of the normalisation, written to the interior of a padded picture. `gradient` begins at row `begin`.
  void (*normalise_backward)(const Shape& shape, const float* gradient, const float* normalised,
                             const float* inverse_deviation, float* padded, std::int64_t begin, std::int64_t end);

  /// sums [50, channels] += gradients of the 49 weights and of the bias. Both pictures padded.
  void (*weight_gradient)(const Shape& shape, const float* padded_input, const float* padded_gradient, float* sums,
                          std::int64_t begin, std::int64_t end);

  /// values [pixels, columns] = gelu(values + bias); slope (if not null) = its derivative there. Over pixels.
  void (*gelu)(std::int64_t columns, const float* bias, float* values, float* slope, std::int64_t begin,
               std::int64_t end);

  /// gradient *= slope; sums [columns] += the result's column sums. Over pixels.
  void (*gelu_backward)(std::int64_t columns, const float* slope, float* gradient, float* sums, std::int64_t begin,
                        std::int64_t end);

  /// values += other + bias, row by row. Over pixels.
  void (*add)(std::int64_t columns, const float* other, const float* bias, float* values, std::int64_t begin,
              std::int64_t end);

  /// sums [columns] += column sums. Over pixels.
  void (*column_sums)(std::int64_t columns, const float* values, float* sums, std::int64_t begin, std::int64_t end);
};

/// nullptr when the processor lacks AVX2 or FMA; torch's operations are then used.
const Kernels* kernels();

}  // namespace unidle::workloads::superres
