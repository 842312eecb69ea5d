// Products of small matrices in plain memory, without the overhead of a BLAS call; single-threaded.
//
// Compiled for AVX2 with FMA; products() says whether this processor has them.
#pragma once

#include <cstdint>

namespace unidle::workloads {

constexpr std::int64_t kLanes = 8;  // floats per vector

/// c [rows, columns] = a * b, or c += a * b. Element (r, k) of a is at a[r * a_row + k * a_depth], so that a may be a
/// transposed view; b_row and c_row are the row strides of b [depth, columns] and c. Rows of b are read in whole
/// kLanes; c is not written beyond its columns.
struct Product {
  const float* a;
  std::int64_t a_row;
  std::int64_t a_depth;
  const float* b;
  std::int64_t b_row;
  float* c;
  std::int64_t c_row;
  std::int64_t rows;
  std::int64_t depth;
  std::int64_t columns;
};

struct Products {
  void (*multiply)(const Product& product);
  void (*multiply_add)(const Product& product);
};

/// nullptr when the processor lacks AVX2 or FMA.
const Products* products();

}  // namespace unidle::workloads
