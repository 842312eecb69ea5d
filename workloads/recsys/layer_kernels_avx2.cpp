// Compiled for AVX2 and FMA; see CMakeLists.txt. Includes no header whose inline functions other files share: the
// linker could keep the AVX2 copies.
#include "workloads/recsys/layer_kernels.h"

#include "workloads/common/lanes.h"
#include "workloads/common/products.h"

namespace unidle::workloads::recsys {

namespace {

/// Transposes a kLanes x kLanes square; the strides are in floats.
inline void transpose_square(const float* from, std::int64_t from_row, float* to, std::int64_t to_row) {
  Lanes pairs[8];
  for (int r = 0; r < 8; r += 2) {
    const Lanes a = load(from + r * from_row);
    const Lanes b = load(from + (r + 1) * from_row);
    pairs[r] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[r + 1] = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
  }
  Lanes fours[8];  // columns 0 and 4, 1 and 5, ... of rows 0 to 3, then of rows 4 to 7
  for (int half = 0; half < 8; half += 4) {
    for (int i = 0; i < 2; ++i) {
      const Lanes a = pairs[half + i];
      const Lanes b = pairs[half + i + 2];
      fours[half + 2 * i] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
      fours[half + 2 * i + 1] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int i = 0; i < 4; ++i) {
    store(to + i * to_row, __builtin_shufflevector(fours[i], fours[4 + i], 0, 1, 2, 3, 8, 9, 10, 11));
    store(to + (4 + i) * to_row, __builtin_shufflevector(fours[i], fours[4 + i], 4, 5, 6, 7, 12, 13, 14, 15));
  }
}

/// Packs kLanes columns of a panel from `some` rows of the weight.
void pack_columns(std::int64_t some, std::int64_t inputs, const float* weight, float* to, std::int64_t to_row) {
  std::int64_t k = 0;
  if (some == kLanes) {
    for (; k + kLanes <= inputs; k += kLanes) {
      transpose_square(weight + k, inputs, to + k * to_row, to_row);
    }
  }
  for (; k < inputs; ++k) {
    for (std::int64_t output = 0; output < kLanes; ++output) {
      to[k * to_row + output] = output < some ? weight[output * inputs + k] : 0.0F;
    }
  }
}

void pack(std::int64_t outputs, std::int64_t inputs, const float* weight, float* panels) {
  for (std::int64_t panel = 0; panel < outputs; panel += kPanel) {
    const std::int64_t width = outputs - panel > kLanes ? kPanel : kLanes;
    for (std::int64_t first = 0; first < width; first += kLanes) {
      const std::int64_t left = outputs - panel - first;
      pack_columns(left < kLanes ? left : kLanes, inputs, weight + (panel + first) * inputs,
                   panels + panel * inputs + first, width);
    }
  }
}

void activate(std::int64_t rows, std::int64_t columns, const float* bias, float* values) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float* at = values + row * columns;
    for (std::int64_t c = 0; c < columns; c += kLanes) {
      const Lanes value = load(at + c) + load(bias + c);
      store(at + c, value < 0.0F ? splat(0.0F) : value);  // NaN stays NaN, as in torch
    }
  }
}

void activate_backward(std::int64_t rows, std::int64_t columns, const float* values, float* gradient, float* sums) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t at = row * columns;
    for (std::int64_t c = 0; c < columns; c += kLanes) {
      const Lanes kept = load(values + at + c) <= 0.0F ? splat(0.0F) : load(gradient + at + c);
      store(gradient + at + c, kept);
      store(sums + c, load(sums + c) + kept);
    }
  }
}

void add_to(std::int64_t count, const float* from, float* to) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(to + i, load(to + i) + load(from + i));
  }
  for (; i < count; ++i) {
    to[i] += from[i];
  }
}

}  // namespace

const LayerKernels* layer_kernels() {
#if defined(__AVX2__) && defined(__FMA__)
  static const LayerKernels kAvx2 = {pack, activate, activate_backward, add_to};
  static const bool kSupported = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return kSupported ? &kAvx2 : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace unidle::workloads::recsys
