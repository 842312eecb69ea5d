// What nvidia-smi writes in other forms than rows of plain readings.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "unidle/logs/gpu_format.h"

namespace unidle::logs {
namespace {

GpuLog read_by(const std::string& bytes, std::string_view program) {
  const GpuFormat* format = gpu_format_of(bytes);
  EXPECT_NE(format, nullptr);
  EXPECT_EQ(format->program, program);
  Source source("smi.log", bytes);
  return format->read(source, {});
}

TEST(NvidiaSmiXml, DocumentsInALoop) {
  constexpr const char* kDocument =
      "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n"
      "\t<timestamp>Tue Mar  5 10:00:{0:02} 2024</timestamp>\n\t<gpu id=\"00000000:17:00.0\">\n"
      "\t\t<product_name>NVIDIA A100</product_name>\n"
      "\t\t<fb_memory_usage>\n\t\t\t<total>81920 MiB</total>\n\t\t\t<used>40960 MiB</used>\n\t\t</fb_memory_usage>\n"
      "\t\t<bar1_memory_usage>\n\t\t\t<used>1 MiB</used>\n\t\t</bar1_memory_usage>\n"
      "\t\t<utilization>\n\t\t\t<gpu_util>{1} %</gpu_util>\n\t\t\t<memory_util>3 %</memory_util>\n\t\t</utilization>\n"
      "\t\t<{2}>\n\t\t\t<power_draw>63.50 W</power_draw>\n\t\t</{2}>\n\t</gpu>\n"
      "\t<gpu id=\"00000000:65:00.0\">\n\t\t<utilization>\n\t\t\t<gpu_util>N/A</gpu_util>\n\t\t</utilization>\n"
      "\t\t<clocks>\n\t\t\t<sm_clock>1410 MHz</sm_clock>\n\t\t</clocks>\n\t</gpu>\n</nvidia_smi_log>\n";
  for (const char* power : {"power_readings", "gpu_power_readings"}) {
    const GpuLog log = read_by(
        fmt::format(fmt::runtime(kDocument), 0, 14, power) + fmt::format(fmt::runtime(kDocument), 10, 18, power),
        "nvidia-smi -q -x");
    ASSERT_EQ(log.gpus.size(), 2U);
    const GpuUse& use = log.gpus.front();
    EXPECT_EQ(use.id, "00000000:17:00.0");
    EXPECT_EQ(use.name, "NVIDIA A100");
    EXPECT_NEAR(use.utilisation.mean(), 0.16, 1e-12);
    EXPECT_NEAR(use.power_w.mean(), 63.5, 1e-12);
    EXPECT_EQ(use.memory_used.most * 2, use.memory_total.most);
    EXPECT_EQ(*use.last_ns - *use.first_ns, 10'000'000'000);
    EXPECT_FALSE(log.gpus.back().utilisation);
    EXPECT_EQ(log.gpus.back().sm_mhz.mean(), 1410);
  }
}

TEST(GpuQuery, ReasonsForLowClocksAsAMask) {
  const GpuLog log = read_by(
      "index, utilization.gpu [%], clocks_event_reasons.active\n0, 99 %, 0x0000000000000004\n0, 99 %, "
      "0x0000000000000020\n"
      "0, 99 %, 0x0000000000000048\n0, 99 %, [N/A]\n",
      "nvidia-smi --query-gpu");
  EXPECT_EQ(log.gpus.front().throttled_known, 3);
  EXPECT_EQ(log.gpus.front().throttled, 2);  // the first one is the power limit that was asked for
}

TEST(GpuQuery, AGpuThatRequiresAReset) {
  const GpuLog log = read_by(
      "timestamp, index, utilization.gpu [%]\n2024/03/05 10:00:00.000, 0, 60 %\n"
      "2024/03/05 10:00:01.000, 0, [GPU requires reset]\n",
      "nvidia-smi --query-gpu");
  EXPECT_EQ(log.complaints, 1);
  EXPECT_EQ(log.gpus.front().utilisation.count, 1);
}

}  // namespace
}  // namespace unidle::logs
