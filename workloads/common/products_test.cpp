#include "workloads/common/products.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace unidle::workloads {
namespace {

// Covers all remainders of tiles, a transposed view as in a weight's gradient, and strided rows.
TEST(Products, MatchTorch) {
  if (products() == nullptr) {
    GTEST_SKIP() << "no AVX2";
  }
  constexpr std::int64_t kRow = 48;
  constexpr std::int64_t kDepth = 5;
  for (const std::int64_t rows : {1, 4, 6, 13, 23}) {
    for (const std::int64_t columns : {1, 8, 16, 29, 40}) {
      const at::Tensor a = at::randn({rows, kDepth});
      const at::Tensor turned = a.t().contiguous();
      const at::Tensor b = at::randn({kDepth, kRow});
      const at::Tensor c = at::full({rows, kRow}, 100.0);
      const at::Tensor inside = c.narrow(1, 0, columns);
      const at::Tensor expected = at::mm(a, b.narrow(1, 0, columns));
      const float* from = b.const_data_ptr<float>();
      float* to = c.mutable_data_ptr<float>();
      products()->multiply({a.const_data_ptr<float>(), kDepth, 1, from, kRow, to, kRow, rows, kDepth, columns});
      EXPECT_TRUE(at::allclose(inside, expected, 1e-5, 1e-5)) << rows << " x " << columns;
      products()->multiply_add({turned.const_data_ptr<float>(), 1, rows, from, kRow, to, kRow, rows, kDepth, columns});
      EXPECT_TRUE(at::allclose(inside, 2 * expected, 1e-5, 1e-5)) << rows << " x " << columns;
      EXPECT_TRUE(c.narrow(1, columns, kRow - columns).eq(100.0).all().item<bool>()) << rows << " x " << columns;
    }
  }
}

}  // namespace
}  // namespace unidle::workloads
