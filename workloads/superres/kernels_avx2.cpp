// Compiled for AVX2 and FMA; see CMakeLists.txt. Includes no header whose inline functions other files share: the
// linker could keep the AVX2 copies.
#include <cstdint>
#include <cstring>

#include "workloads/common/lanes.h"
#include "workloads/superres/kernels.h"

namespace unidle::workloads::superres {

namespace {

/// The row of the padded picture where the window of a plain row starts: its upper left corner.
inline std::int64_t padded_row(const Shape& shape, std::int64_t row) {
  const std::int64_t picture = row / shape.height;
  return (picture * (shape.height + 2 * kBorder) + row % shape.height) * (shape.width + 2 * kBorder) * shape.channels;
}
inline std::int64_t row_stride(const Shape& shape) { return (shape.width + 2 * kBorder) * shape.channels; }
/// Offset from a window's corner to its centre.
inline std::int64_t to_centre(const Shape& shape) { return kBorder * row_stride(shape) + kBorder * shape.channels; }

void pad(const Shape& shape, const float* in, float* padded, std::int64_t begin, std::int64_t end) {
  const std::int64_t row_floats = shape.width * shape.channels;
  for (std::int64_t row = begin; row < end; ++row) {
    std::memcpy(padded + padded_row(shape, row) + to_centre(shape), in + row * row_floats,
                static_cast<std::size_t>(row_floats) * sizeof(float));
  }
}

/// Kernel for `Pixels` neighbours and kLanes channels: each input is loaded once for all outputs that use it.
template <int Pixels>
inline void convolve(const float* corner, std::int64_t row_floats, std::int64_t channels, const float* weights,
                     Lanes* sums) {
  for (std::int64_t ky = 0; ky < kTaps; ++ky) {
    Lanes taps[kTaps];
    for (int kx = 0; kx < kTaps; ++kx) {
      taps[kx] = load(weights + (ky * kTaps + kx) * channels);
    }
    const float* row = corner + ky * row_floats;
#pragma GCC unroll 16
    for (int x = 0; x < Pixels + kTaps - 1; ++x) {
      const Lanes value = load(row + x * channels);
#pragma GCC unroll 8
      for (int kx = 0; kx < kTaps; ++kx) {
        if (x - kx >= 0 && x - kx < Pixels) {
          sums[x - kx] += value * taps[kx];
        }
      }
    }
  }
}

/// `first`: initial values of the sums, advanced by `first_stride` per pixel (0 for a bias).
template <int Pixels>
inline void convolve_block(const float* corner, std::int64_t row_floats, std::int64_t channels, const float* weights,
                           const float* first, std::int64_t first_stride, float* out) {
  Lanes sums[Pixels];
  for (int x = 0; x < Pixels; ++x) {
    sums[x] = load(first + x * first_stride);
  }
  convolve<Pixels>(corner, row_floats, channels, weights, sums);
  for (int x = 0; x < Pixels; ++x) {
    store(out + x * channels, sums[x]);
  }
}

void convolve_row(const Shape& shape, const float* corner, const float* weights, const float* first,
                  std::int64_t first_stride, float* out) {
  constexpr int kPixels = 8;
  const std::int64_t channels = shape.channels;
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    std::int64_t x = 0;
    for (; x + kPixels <= shape.width; x += kPixels) {
      convolve_block<kPixels>(corner + x * channels + c, row_stride(shape), channels, weights + c,
                              first + x * first_stride + c, first_stride, out + x * channels + c);
    }
    for (; x < shape.width; ++x) {
      convolve_block<1>(corner + x * channels + c, row_stride(shape), channels, weights + c,
                        first + x * first_stride + c, first_stride, out + x * channels + c);
    }
  }
}

float inverse_square_root(float value) {
  float root = __builtin_sqrtf(value);
  return 1.0F / root;
}

/// Normalises one pixel's channels to mean 0 and variance 1; returns 1 / deviation.
float normalise(std::int64_t channels, float epsilon, float* pixel) {
  const float scale = 1.0F / static_cast<float>(channels);
  Lanes total{};
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    total += load(pixel + c);
  }
  const Lanes mean = splat(sum(total) * scale);
  Lanes squares{};
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    const Lanes centred = load(pixel + c) - mean;
    squares += centred * centred;
  }
  const float inverse = inverse_square_root(sum(squares) * scale + epsilon);
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    store(pixel + c, (load(pixel + c) - mean) * inverse);
  }
  return inverse;
}

void convolve_normalise(const Shape& shape, const float* padded, const float* weights, const float* bias, float epsilon,
                        float* out, float* inverse_deviation, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    float* out_row = out + row * shape.width * shape.channels;
    convolve_row(shape, padded + padded_row(shape, row), weights, bias, 0, out_row);
    for (std::int64_t x = 0; x < shape.width; ++x) {
      inverse_deviation[row * shape.width + x] = normalise(shape.channels, epsilon, out_row + x * shape.channels);
    }
  }
}

void convolve_add(const Shape& shape, const float* padded, const float* weights, const float* residual, float* out,
                  std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t at = row * shape.width * shape.channels;
    convolve_row(shape, padded + padded_row(shape, row), weights, residual + at, shape.channels, out + at);
  }
}

void normalise_backward(const Shape& shape, const float* gradient, const float* normalised,
                        const float* inverse_deviation, float* padded, std::int64_t begin, std::int64_t end) {
  const std::int64_t channels = shape.channels;
  const float scale = 1.0F / static_cast<float>(channels);
  for (std::int64_t row = begin; row < end; ++row) {
    float* to = padded + padded_row(shape, row) + to_centre(shape);
    for (std::int64_t x = 0; x < shape.width; ++x) {
      const std::int64_t pixel = row * shape.width + x;
      const float* g = gradient + (pixel - begin * shape.width) * channels;
      const float* y = normalised + pixel * channels;
      Lanes sum_g{};
      Lanes sum_gy{};
      for (std::int64_t c = 0; c < channels; c += kLanes) {
        sum_g += load(g + c);
        sum_gy += load(g + c) * load(y + c);
      }
      const Lanes mean_g = splat(sum(sum_g) * scale);
      const Lanes mean_gy = splat(sum(sum_gy) * scale);
      const Lanes inverse = splat(inverse_deviation[pixel]);
      for (std::int64_t c = 0; c < channels; c += kLanes) {
        store(to + x * channels + c, inverse * (load(g + c) - mean_g - load(y + c) * mean_gy));
      }
    }
  }
}

/// Gradients of the seven weights of kernel row `ky` for kLanes channels, over all rows: sums stay in registers.
void weight_gradient_row(const Shape& shape, const float* input, const float* gradient, std::int64_t ky, float* sums,
                         std::int64_t begin, std::int64_t end) {
  const std::int64_t channels = shape.channels;
  Lanes taps[kTaps]{};
  for (std::int64_t row = begin; row < end; ++row) {
    const float* in = input + padded_row(shape, row) + ky * row_stride(shape);
    const float* g = gradient + padded_row(shape, row) + to_centre(shape);
    for (std::int64_t x = 0; x < shape.width; ++x) {
      const Lanes slope = load(g + x * channels);
#pragma GCC unroll 8
      for (int kx = 0; kx < kTaps; ++kx) {
        taps[kx] += slope * load(in + (x + kx) * channels);
      }
    }
  }
  for (int kx = 0; kx < kTaps; ++kx) {
    float* to = sums + (ky * kTaps + kx) * channels;
    store(to, load(to) + taps[kx]);
  }
}

void weight_gradient(const Shape& shape, const float* padded_input, const float* padded_gradient, float* sums,
                     std::int64_t begin, std::int64_t end) {
  const std::int64_t channels = shape.channels;
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    for (std::int64_t ky = 0; ky < kTaps; ++ky) {
      weight_gradient_row(shape, padded_input + c, padded_gradient + c, ky, sums + c, begin, end);
    }
    Lanes bias{};
    for (std::int64_t row = begin; row < end; ++row) {
      const float* g = padded_gradient + padded_row(shape, row) + to_centre(shape) + c;
      for (std::int64_t x = 0; x < shape.width; ++x) {
        bias += load(g + x * channels);
      }
    }
    float* to = sums + kTaps * kTaps * channels + c;
    store(to, load(to) + bias);
  }
}

/// x * Phi(x) and its derivative. Phi by Abramowitz and Stegun 7.1.26, absolute error 1.5e-7 in erf: one exponential
/// serves both.
inline Lanes gelu_of(Lanes x, Lanes* slope) {
  const Lanes size = x < 0.0F ? -x : x;
  const Lanes density = exp_negative(x * x * -0.5F);
  const Lanes t = 1.0F / (1.0F + size * (0.3275911F * 0.70710678118654752F));
  Lanes p = splat(1.061405429F);
  p = p * t - 1.453152027F;
  p = p * t + 1.421413741F;
  p = p * t - 0.284496736F;
  p = p * t + 0.254829592F;
  const Lanes tail = 0.5F * p * t * density;
  const Lanes cumulative = x < 0.0F ? tail : 1.0F - tail;
  *slope = cumulative + x * density * 0.398942280401432678F;
  return x * cumulative;
}

void gelu(std::int64_t columns, const float* bias, float* values, float* slope, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    float* at = values + row * columns;
    for (std::int64_t c = 0; c < columns; c += kLanes) {
      Lanes derivative;
      store(at + c, gelu_of(load(at + c) + load(bias + c), &derivative));
      if (slope != nullptr) {
        store(slope + row * columns + c, derivative);
      }
    }
  }
}

void gelu_backward(std::int64_t columns, const float* slope, float* gradient, float* sums, std::int64_t begin,
                   std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t c = 0; c < columns; c += kLanes) {
      const Lanes product = load(gradient + row * columns + c) * load(slope + row * columns + c);
      store(gradient + row * columns + c, product);
      store(sums + c, load(sums + c) + product);
    }
  }
}

void add(std::int64_t columns, const float* other, const float* bias, float* values, std::int64_t begin,
         std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t c = 0; c < columns; c += kLanes) {
      float* at = values + row * columns + c;
      store(at, load(at) + load(other + row * columns + c) + load(bias + c));
    }
  }
}

void column_sums(std::int64_t columns, const float* values, float* sums, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t c = 0; c < columns; c += kLanes) {
      store(sums + c, load(sums + c) + load(values + row * columns + c));
    }
  }
}

}  // namespace

const Kernels* kernels() {
#if defined(__AVX2__) && defined(__FMA__)
  static const Kernels kAvx2 = {pad,  convolve_normalise, convolve_add, normalise_backward, weight_gradient,
                                gelu, gelu_backward,      add,          column_sums};
  static const bool kSupported = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return kSupported ? &kAvx2 : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace unidle::workloads::superres
