#include "unidle/tune/advice/hardware.h"

#include <gtest/gtest.h>

namespace unidle::tune {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

telemetry::GpuFacts gpu(unsigned index, const char* name, const char* uuid, std::uint64_t gib, const char* capability) {
  telemetry::GpuFacts facts;
  facts.index = index;
  facts.name = name;
  facts.uuid = uuid;
  facts.memory_bytes = gib * kGiB;
  facts.capability = capability;
  return facts;
}

telemetry::MigDevice slice(unsigned index, const char* name, const char* uuid, std::uint64_t gib) {
  telemetry::MigDevice device;
  device.index = index;
  device.name = name;
  device.uuid = uuid;
  device.memory = telemetry::GpuMemory{gib * kGiB, 0};
  return device;
}

/// A T4, an H200 with two slices, and an unrelated GPU.
std::vector<telemetry::GpuFacts> mixed_gpus() {
  std::vector<telemetry::GpuFacts> gpus = {gpu(0, "T4", "GPU-1111", 16, "7.5"), gpu(1, "H200", "GPU-2222", 140, "9.0"),
                                           gpu(2, "A100", "GPU-3333", 80, "8.0")};
  gpus[1].mig = {slice(0, "H200 MIG 1g.18gb", "MIG-aaaa", 18), slice(1, "H200 MIG 3g.71gb", "MIG-bbbb", 71)};
  gpus[2].hidden = true;
  return gpus;
}

void expect_first(const std::optional<std::string>& visible, int count, const char* name, std::uint64_t gib,
                  int capability) {
  const Hardware found = gpus_shown(mixed_gpus(), visible);
  EXPECT_EQ(found.gpus, count);
  EXPECT_EQ(found.gpu_name, name);
  EXPECT_EQ(found.gpu_memory_bytes, gib * kGiB);
  EXPECT_EQ(found.capability, capability);
  EXPECT_EQ(found.gpu_note, "");
}

TEST(GpusShown, AllThatAreNotHiddenWithoutTheVariable) { expect_first({}, 2, "T4", 16, 75); }

TEST(GpusShown, ThoseThatItNamesByNumberOrUuid) {
  expect_first("1", 1, "H200 MIG 1g.18gb", 18, 90);
  expect_first("1, 0", 2, "H200 MIG 1g.18gb", 18, 90);
  expect_first("GPU-11", 1, "T4", 16, 75);
  expect_first("MIG-bbbb", 1, "H200 MIG 3g.71gb", 71, 90);
}

TEST(GpusShown, WhatFollowsAWordThatNamesNoneDoesNotCount) {
  expect_first("0,7,1", 1, "T4", 16, 75);
  expect_first("0,-1,1", 1, "T4", 16, 75);
}

TEST(GpusShown, NoneThatIsThereIsSaid) {
  for (const char* visible : {"", "-1", "NoDevFiles", "GPU-", "GPU-3333"}) {
    const Hardware found = gpus_shown(mixed_gpus(), visible);
    EXPECT_EQ(found.gpus, 0) << visible;
    EXPECT_NE(found.gpu_note.find("shows no GPU"), std::string::npos) << visible;
  }
  EXPECT_EQ(gpus_shown({}, "0").gpu_note, "");
}

}  // namespace
}  // namespace unidle::tune
