#include "unidle/telemetry/peak_rates.h"

#include <gtest/gtest.h>

namespace unidle::telemetry {
namespace {

double half_of(std::string_view name) {
  const auto rates = peak_rates(name);
  return rates ? rates->half : 0;
}

// Names as drivers and torch print them.
TEST(PeakRates, FindsTheVariant) {
  EXPECT_EQ(half_of("NVIDIA H100 80GB HBM3"), 989.4);
  EXPECT_EQ(half_of("NVIDIA H100 PCIe"), 756);
  EXPECT_EQ(half_of("NVIDIA H100 NVL"), 835.5);
  EXPECT_EQ(half_of("NVIDIA GH200 480GB"), 989.4);
  EXPECT_EQ(half_of("NVIDIA H20"), 148);
  EXPECT_EQ(half_of("NVIDIA A100-SXM4-80GB"), 312);
  EXPECT_EQ(half_of("NVIDIA A100-PCIE-40GB"), 312);
  EXPECT_EQ(half_of("Tesla V100-SXM2-32GB"), 125);
  EXPECT_EQ(half_of("Tesla V100-PCIE-16GB"), 112);
  EXPECT_EQ(half_of("Tesla T4"), 65);
  EXPECT_EQ(half_of("NVIDIA L4"), 121);
  EXPECT_EQ(half_of("NVIDIA L40S"), 362.05);
  EXPECT_EQ(half_of("NVIDIA RTX A6000"), 154.8);
  EXPECT_EQ(half_of("NVIDIA GeForce RTX 3090 Ti"), 80);
  EXPECT_EQ(half_of("AMD Instinct MI300X"), 1307.4);
}

TEST(PeakRates, KnowsNothingOfOthers) {
  EXPECT_FALSE(peak_rates("NVIDIA A10G"));  // its sheets contradict each other
  EXPECT_FALSE(peak_rates("NVIDIA GeForce RTX 2080 Ti"));
  EXPECT_FALSE(peak_rates("NVIDIA T400"));
  EXPECT_FALSE(peak_rates(""));
}

TEST(PeakRates, Tf32NeedsAmpere) {
  EXPECT_EQ(peak_rates("Tesla T4")->tf32, 0);
  EXPECT_EQ(peak_rates("NVIDIA A100-SXM4-40GB")->tf32, 156);
}

}  // namespace
}  // namespace unidle::telemetry
