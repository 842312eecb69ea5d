// Compiled for AVX2 and FMA; see CMakeLists.txt. Includes no header whose inline functions other files share: the
// linker could keep the AVX2 copies.
#include "workloads/timeseries/lstm_kernels.h"

#include "workloads/common/lanes.h"

namespace unidle::workloads::timeseries {

namespace {

inline Lanes size_of(Lanes x) { return x < 0.0F ? -x : x; }

inline Lanes sigmoid(Lanes x) {
  const Lanes e = exp_negative(-size_of(x));
  const Lanes least = 1.0F / (1.0F + e);
  return x < 0.0F ? e * least : least;
}

/// Absolute error about 1e-7.
inline Lanes tanh_of(Lanes x) {
  const Lanes e = exp_negative(-2.0F * size_of(x));
  const Lanes t = (1.0F - e) / (1.0F + e);
  return x < 0.0F ? -t : t;
}

void forward(const LstmDay& day) {
  const std::int64_t width = day.width;
  for (std::int64_t row = 0; row < day.rows; ++row) {
    float* gates = day.gates + row * 4 * width;
    for (std::int64_t u = 0; u < width; u += kLanes) {
      const Lanes input = sigmoid(load(gates + u) + load(day.bias + u));
      const Lanes forget = sigmoid(load(gates + width + u) + load(day.bias + width + u));
      const Lanes candidate = tanh_of(load(gates + 2 * width + u) + load(day.bias + 2 * width + u));
      const Lanes output = sigmoid(load(gates + 3 * width + u) + load(day.bias + 3 * width + u));
      const std::int64_t at = row * width + u;
      const Lanes before = day.before != nullptr ? load(day.before + at) : Lanes{};
      const Lanes cells = forget * before + input * candidate;
      const Lanes tanh_cells = tanh_of(cells);
      store(gates + u, input);
      store(gates + width + u, forget);
      store(gates + 2 * width + u, candidate);
      store(gates + 3 * width + u, output);
      store(day.cells + at, cells);
      store(day.tanh_cells + at, tanh_cells);
      store(day.output + at, output * tanh_cells);
    }
  }
}

void backward(const LstmDayBack& day) {
  const std::int64_t width = day.width;
  for (std::int64_t row = 0; row < day.rows; ++row) {
    const float* gates = day.gates + row * 4 * width;
    float* gradient = day.gate_gradient + row * day.gate_gradient_row;
    for (std::int64_t u = 0; u < width; u += kLanes) {
      const std::int64_t at = row * width + u;
      const Lanes input = load(gates + u);
      const Lanes forget = load(gates + width + u);
      const Lanes candidate = load(gates + 2 * width + u);
      const Lanes output = load(gates + 3 * width + u);
      const Lanes tanh_cells = load(day.tanh_cells + at);
      const Lanes before = day.before != nullptr ? load(day.before + at) : Lanes{};
      const Lanes of_output = load(day.from_above + at) + load(day.from_after + at);
      const Lanes of_cells = load(day.cell_gradient + at) + of_output * output * (1.0F - tanh_cells * tanh_cells);
      const auto keep = [&](std::int64_t gate, Lanes value) {
        store(gradient + gate * width + u, value);
        store(day.bias_gradient + gate * width + u, load(day.bias_gradient + gate * width + u) + value);
      };
      keep(0, of_cells * candidate * input * (1.0F - input));
      keep(1, of_cells * before * forget * (1.0F - forget));
      keep(2, of_cells * input * (1.0F - candidate * candidate));
      keep(3, of_output * tanh_cells * output * (1.0F - output));
      store(day.cell_gradient + at, of_cells * forget);
    }
  }
}

}  // namespace

const LstmKernels* lstm_kernels() {
#if defined(__AVX2__) && defined(__FMA__)
  static const LstmKernels kAvx2 = {forward, backward};
  // torch uses oneDNN's layer, which is faster on wider units. AMD's Zen 4 has none: it splits an AVX-512 operation in
  // two.
  static const bool kBest = __builtin_cpu_supports("avx512f") == 0 || __builtin_cpu_is("amd") != 0;
  static const bool kSupported = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return kSupported && kBest ? &kAvx2 : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace unidle::workloads::timeseries
