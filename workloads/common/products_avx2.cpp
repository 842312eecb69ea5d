// Compiled for AVX2 and FMA; see CMakeLists.txt. Includes no header whose inline functions other files share: the
// linker could keep the AVX2 copies.
#include "workloads/common/products.h"

#include "workloads/common/lanes.h"

namespace unidle::workloads {

namespace {

/// Rows x Vectors vectors of the product, starting at `a` and `b`; the sums stay in registers. Of the last vector only
/// `lanes` are stored.
template <int Rows, int Vectors>
inline void multiply_tile(const Product& p, const float* a, const float* b, float* c, std::int64_t lanes, bool add) {
  Lanes sums[Rows][Vectors]{};
  for (std::int64_t k = 0; k < p.depth; ++k) {
    Lanes values[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      values[v] = load(b + k * p.b_row + v * kLanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const float factor = a[r * p.a_row + k * p.a_depth];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        sums[r][v] += factor * values[v];
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      float* to = c + r * p.c_row + v * kLanes;
      if (v + 1 < Vectors || lanes == kLanes) {
        store(to, add ? load(to) + sums[r][v] : sums[r][v]);
      } else {
        const Lanes some = sums[r][v];
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
          to[lane] = add ? to[lane] + some[lane] : some[lane];
        }
      }
    }
  }
}

/// Rows of the next tile. With two vectors, six rows are twelve sums, enough to hide a multiplication's latency. Four
/// rows with eight sums are enough as well, and two such tiles are faster than one of six and one of one or two.
inline std::int64_t rows_of_tile(std::int64_t left) {
  if (left == 7 || left == 8) {
    return 4;
  }
  return left < 6 ? left : 6;
}

/// Computes Vectors * kLanes columns, from `column` on, of all rows.
template <int Vectors>
inline void multiply_columns(const Product& p, std::int64_t column, std::int64_t lanes, bool add) {
  const float* b = p.b + column;
  for (std::int64_t row = 0; row < p.rows;) {
    const float* a = p.a + row * p.a_row;
    float* c = p.c + row * p.c_row + column;
    const std::int64_t rows = rows_of_tile(p.rows - row);
    switch (rows) {
      case 1: multiply_tile<1, Vectors>(p, a, b, c, lanes, add); break;
      case 2: multiply_tile<2, Vectors>(p, a, b, c, lanes, add); break;
      case 3: multiply_tile<3, Vectors>(p, a, b, c, lanes, add); break;
      case 4: multiply_tile<4, Vectors>(p, a, b, c, lanes, add); break;
      case 5: multiply_tile<5, Vectors>(p, a, b, c, lanes, add); break;
      default: multiply_tile<6, Vectors>(p, a, b, c, lanes, add); break;
    }
    row += rows;
  }
}

void multiply_or_add(const Product& p, bool add) {
  std::int64_t column = 0;
  for (; column + 2 * kLanes <= p.columns; column += 2 * kLanes) {
    multiply_columns<2>(p, column, kLanes, add);
  }
  for (; column < p.columns; column += kLanes) {
    multiply_columns<1>(p, column, p.columns - column < kLanes ? p.columns - column : kLanes, add);
  }
}

void multiply(const Product& product) { multiply_or_add(product, false); }
void multiply_add(const Product& product) { multiply_or_add(product, true); }

}  // namespace

const Products* products() {
#if defined(__AVX2__) && defined(__FMA__)
  static const Products kAvx2 = {multiply, multiply_add};
  static const bool kSupported = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return kSupported ? &kAvx2 : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace unidle::workloads
