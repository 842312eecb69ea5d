// Products of small matrices on plain memory, without the cost of a call to a BLAS; single-threaded each.
//
// Compiled for AVX2 with FMA; products() says whether this processor has them.
#pragma once

#include <cstdint>

namespace unidle::workloads {

constexpr std::int64_t kLanes = 8;  // floats that are worked on together

/// c [rows, columns] = a * b, or c += a * b. Element (r, k) of a lies at a[r * a_row + k * a_depth], so that a may be a
/// transposed view; rows of b [depth, columns] and of c are b_row and c_row apart. Rows of b are read in whole kLanes,
/// of c nothing is touched beyond its columns.
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

/// nullptr where the processor has neither AVX2 nor FMA.
const Products* products();

}  // namespace unidle::workloads
