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

TEST(PeakRates, KnowsNothingOfPartsAndSlowerVariants) {
  for (const char* name :
       {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA H100 80GB HBM3 MIG 3g.40gb", "GRID A100-7-40C", "NVIDIA A40-8Q",
        "NVIDIA A100-7-40C", "NVIDIA L40S-48Q", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 5090 D", "NVIDIA GeForce RTX 3090 with Max-Q Design", "Tesla V100-FHHL-16GB",
        "NVIDIA A100-SXM-64GB", "AMD Instinct MI300X VF"}) {
    EXPECT_FALSE(peak_rates(name)) << name;
  }
}

TEST(PeakRates, TheCardForPciEHasOtherMemory) {
  EXPECT_EQ(half_of("NVIDIA H100 80GB HBM2e"), 756);
  EXPECT_EQ(half_of("NVIDIA A100 80GB PCIe"), 312);
  EXPECT_EQ(half_of("NVIDIA H200 NVL"), 835.5);
  EXPECT_EQ(half_of("NVIDIA B300 SXM6 AC"), 2250);
  EXPECT_EQ(half_of("Tesla V100S-PCIE-32GB"), 130);
}

TEST(PeakRates, Bf16NeedsAmpereOrCdna) {
  EXPECT_FALSE(peak_rates("Tesla T4")->has_bf16);
  EXPECT_FALSE(peak_rates("Tesla V100-SXM2-16GB")->has_bf16);
  EXPECT_TRUE(peak_rates("NVIDIA A10")->has_bf16);
}

// rocBLAS computes fp32 on matrix units. A process sees the two halves of an MI250X as two devices.
TEST(PeakRates, Fp32OfAmdsMatrixUnits) {
  EXPECT_EQ(peak_rates("AMD Instinct MI210")->fp32, 45.3);
  EXPECT_EQ(peak_rates("AMD Instinct MI250X")->fp32, 95.7 / 2);
}

TEST(PeakRates, Tf32NeedsAmpere) {
  EXPECT_EQ(peak_rates("Tesla T4")->tf32, 0);
  EXPECT_EQ(peak_rates("NVIDIA A100-SXM4-40GB")->tf32, 156);
}

}  // namespace
}  // namespace unidle::telemetry
