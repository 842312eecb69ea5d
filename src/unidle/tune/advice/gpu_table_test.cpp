#include "unidle/tune/advice/gpu_table.h"

#include <gtest/gtest.h>

#include "unidle/base/error.h"

namespace unidle::tune {
namespace {

TEST(GpuTable, FindsHoweverWritten) {
  EXPECT_EQ(find_gpu("NVIDIA A100-SXM4-80GB")->memory_gib, 80);
  EXPECT_EQ(find_gpu("a100")->memory_gib, 40) << "the smaller one when none is named";
  EXPECT_EQ(find_gpu("Tesla V100-SXM2-32GB")->capability, 70);
  EXPECT_EQ(find_gpu("NVIDIA GeForce RTX 4090")->capability, 89);
  EXPECT_EQ(find_gpu("h100")->capability, 90);
  EXPECT_EQ(find_gpu("RTX 6000"), std::nullopt) << "Quadro or Ada: not guessed";
  EXPECT_EQ(find_gpu(""), std::nullopt);
  EXPECT_THROW(with_device({}, "Voodoo"), Error);
  EXPECT_EQ(with_device({}, "cpu").gpus, 0);
}

}  // namespace
}  // namespace unidle::tune
