#include "unidle/train/machine_speed.h"

#include <gmock/gmock.h>

namespace unidle::train {
namespace {

TEST(MachineSpeedTest, CpuDoesFp32AndBf16) {
  const nlohmann::json speed = measure_machine({0.01, 64, 1 << 20});
  const nlohmann::json& cpu = speed.at("devices").at(0);
  EXPECT_EQ(cpu["device"], "cpu");
  EXPECT_GT(cpu["matmul_tflops"]["fp32"].get<double>(), 0);
  EXPECT_GT(cpu["matmul_tflops"]["bf16"].get<double>(), 0);
  EXPECT_GT(cpu["launch_s"].get<double>(), 0);
  EXPECT_FALSE(cpu.contains("copy_pinned_bytes_s")) << "there is no link to measure";
}

}  // namespace
}  // namespace unidle::train
