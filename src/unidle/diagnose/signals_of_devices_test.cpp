#include "unidle/diagnose/signals_from_record.h"

#include <gmock/gmock.h>

#include <map>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/scripted_record.h"
#include "unidle/trace/document.h"

namespace unidle::diagnose {
namespace {

using ::testing::Contains;
using ::testing::Field;
using testing::kProcess;
using testing::kStart;
using testing::ms;
using testing::Script;
using testing::write_waiting_run;

class SignalsOfDevices : public testing::ScriptedRecord {};

/// Two steps of 10 ms; in each, the device has one kernel of 2 ms and one copy of 1 ms.
nlohmann::json window_of_two_steps() {
  trace::TraceSummary window;
  window.window_s = 0.020;
  window.step_s.add(0.010);
  window.step_s.add(0.010);
  window.devices = {{"0", 0.006}};
  window.kernels = {{"nvjet_hsh", 2, 0.003, true}, {"add", 2, 0.001, false}};
  window.kernel_count = 4;
  window.kernel_s = 0.004;
  window.matrix_s = 0.003;
  window.copies = {{"HtoD (Pageable -> Device)", 2, 0.002, 3000}, {"HtoD (Pinned -> Device)", 1, 0.001, 1000}};
  return {{"type", "trace_analysis"}, {"file", "trace-42.json"}, {"analysis", trace::to_json(window)}};
}

TEST_F(SignalsOfDevices, AProfilerWindowTellsOfKernelsAndCopies) {
  Script script(folder());
  write_waiting_run(script);
  script.effective("device", "cuda:0");
  script.note(window_of_two_steps());
  script.writer.flush();
  const Signals signals = read();
  EXPECT_NEAR(*signals.device_step_s, 0.003, 1e-9);
  EXPECT_NEAR(*signals.device_busy, 0.03, 1e-9);  // of steps that take 100 ms without a profiler
  EXPECT_THAT(read_signals(record::Reader(folder()), Language::kChinese).device_busy_how,
              ::testing::HasSubstr("内核与复制占"));
  EXPECT_NEAR(signals.kernels->matrix_share, 0.75, 1e-9);
  EXPECT_NEAR(signals.kernels->mean_s, 0.001, 1e-9);
  EXPECT_FALSE(signals.kernels->launch_s);  // none was seen: not zero
  EXPECT_NEAR(signals.transfer->pageable_bytes, 3000, 1e-9);
  EXPECT_NEAR(signals.transfer->pinned_bytes, 1000, 1e-9);
}

TEST_F(SignalsOfDevices, KernelsOfTheWholeRunAreTruerThanNvml) {
  Script script(folder());
  write_waiting_run(script);
  script.effective("device", "cuda:0");
  const std::int64_t utilisation = script.writer.series({std::string(record::series::kGpuUtil), "share", "gpu0"});
  const std::int64_t kernels = script.writer.series({"cupti.busy", "share", "gpu0"});
  for (std::int64_t second = 2; second < 15; ++second) {
    script.writer.add_point(utilisation, {kStart + ms(second * 1000), 0.9});
    script.writer.add_point(kernels, {kStart + ms(second * 1000), 0.25});
  }
  script.writer.flush();
  EXPECT_NEAR(*read().device_busy, 0.25, 1e-9);
  EXPECT_THAT(read_signals(record::Reader(folder()), Language::kChinese).device_busy_how,
              ::testing::HasSubstr("所有流的并集"));
}

TEST_F(SignalsOfDevices, AReadingThatReachesBackIntoWarmUpDoesNotCount) {
  Script script(folder());
  write_waiting_run(script);
  script.effective("device", "cuda:0");
  const std::int64_t utilisation = script.writer.series({std::string(record::series::kGpuUtil), "share", "gpu0"});
  for (std::int64_t second = 2; second < 15; ++second) {
    script.writer.add_point(utilisation, {kStart + ms(second * 1000), second < 4 ? 0.1 : 0.9});
  }
  script.writer.flush();
  EXPECT_NEAR(*read().device_busy, 0.9, 1e-9);
}

TEST_F(SignalsOfDevices, CopiesOfOtherRanksDoNotCount) {
  Script script(folder());
  write_waiting_run(script);
  for (const std::int64_t process : {kProcess, kProcess + 1}) {
    script.writer.add(record::Note{
        kStart,
        process,
        {{"type", "transfer"}, {"where", "train.py:7"}, {"pinned_bytes", 1e6}, {"nonblocking_count", 100}}});
  }
  script.writer.flush();
  EXPECT_EQ(read().transfer->pinned_bytes, 1e6);
  EXPECT_EQ(read().transfer->nonblocking, 100);
}

TEST_F(SignalsOfDevices, RanksWorkAtTheSameTime) {
  Script script(folder());
  write_waiting_run(script);
  for (int i = 0; i < 100; ++i) {
    script.step(2000 + i * 110, 110, 10, kProcess + 1);
  }
  for (const std::int64_t rank : {0, 1}) {
    const std::int64_t process = kProcess + rank;
    script.writer.add(record::Note{kStart, process, {{"type", "parallel"}, {"kind", "ddp"}, {"rank", rank}}});
    script.writer.add(record::Note{kStart, process, {{"type", "rank"}, {"rank", rank}, {"wait_seconds", 0.06 * rank}}});
  }
  script.writer.flush();
  const Signals signals = read();
  ASSERT_EQ(signals.ranks.size(), 2U);
  EXPECT_NEAR(signals.ranks[0].step_s, 0.10, 1e-9);
  EXPECT_NEAR(signals.ranks[1].step_s, 0.11, 1e-9);
  EXPECT_NEAR(*signals.samples_per_s, 160, 1e-6);
  EXPECT_THAT(diagnose(signals).findings, Contains(Field(&Finding::id, "straggler-rank")));
}

TEST_F(SignalsOfDevices, AWindowWithoutADeviceTellsNothingOfOne) {
  Script script(folder());
  write_waiting_run(script);
  trace::TraceSummary window;
  window.step_s.add(0.010);
  script.note({{"type", "trace_analysis"}, {"file", "trace-42.json"}, {"analysis", trace::to_json(window)}});
  script.writer.flush();
  const Signals signals = read();
  EXPECT_FALSE(signals.kernels);
  EXPECT_FALSE(signals.device_step_s);
  EXPECT_FALSE(signals.transfer);
  EXPECT_NEAR(*signals.device_busy, 0.25, 1e-9);  // by the CPUs, as without a window
}

/// Two GPUs; gpu1, the busy one, is used by another job unless the test says otherwise.
void write_two_gpus(Script& script, const std::map<std::string, double>& own_bytes) {
  script.writer.set_meta(
      record::meta::kGpus,
      {{{"index", 0}, {"memory_bytes", 1000}, {"capability", "8.0"}, {"uuid", "GPU-a"}, {"pci", "0000:10:00.0"}},
       {{"index", 1}, {"memory_bytes", 1000}, {"capability", "9.0"}, {"uuid", "GPU-b"}, {"pci", "0000:11:00.0"}}});
  script.effective("device", "cuda:0");  // numbered among the visible devices
  for (int i = 0; i < 20; ++i) {
    script.step(i * 100, 100, 0);
  }
  for (const auto& [subject, busy, bytes] : {std::tuple("gpu0", 0.3, 100.0), std::tuple("gpu1", 0.8, 250.0)}) {
    const auto util = script.writer.series({std::string(record::series::kGpuUtil), "", subject});
    const auto memory = script.writer.series({std::string(record::series::kGpuMemory), "bytes", subject});
    for (int t = 1000; t < 2000; t += 100) {
      script.writer.add_point(util, {kStart + ms(t), busy});
      script.writer.add_point(memory, {kStart + ms(t), bytes});
      if (const auto own = own_bytes.find(subject); own != own_bytes.end()) {
        const auto series = script.writer.series({std::string(record::series::kGpuOwn), "bytes", subject});
        script.writer.add_point(series, {kStart + ms(t), own->second});
      }
    }
  }
}

TEST_F(SignalsOfDevices, TheRunsOwnGpuIsTheOneThatItsProgramNames) {
  Script script(folder());
  write_two_gpus(script, {{"gpu1", 200.0}});
  script.note({{"type", "device"}, {"kind", "cuda"}, {"index", 0}, {"uuid", "GPU-a"}});
  script.end(2000);
  const Signals signals = read();
  EXPECT_EQ(signals.device_kind, "cuda");
  EXPECT_NEAR(*signals.device_busy, 0.3, 1e-9);
  EXPECT_NEAR(*signals.gpu_memory_used, 0.1, 1e-9);
  EXPECT_EQ(signals.gpu_capability, "8.0");
}

TEST_F(SignalsOfDevices, OrTheOneAtItsPciAddress) {
  Script script(folder());
  write_two_gpus(script, {});
  script.note({{"type", "device"}, {"kind", "cuda"}, {"index", 0}, {"pci", "0000:10:00.0"}});
  script.end(2000);
  EXPECT_NEAR(*read().device_busy, 0.3, 1e-9);
}

TEST_F(SignalsOfDevices, OrTheOneWithItsSliceOfWhichTheWholeDevicesMemorySaysNothing) {
  for (const auto& [uuid, pci] :
       {std::pair("GPU-slice", ""), std::pair("MIG-slice", ""), std::pair("GPU-elsewhere", "0000:11:00.0")}) {
    const std::filesystem::path own = folder() / uuid;
    Script script(own);
    write_two_gpus(script, {});
    script.writer.set_meta(record::meta::kGpus,
                           {{{"index", 0}, {"memory_bytes", 1000}, {"uuid", "GPU-a"}, {"pci", "0000:10:00.0"}},
                            {{"index", 1},
                             {"memory_bytes", 1000},
                             {"capability", "9.0"},
                             {"uuid", "GPU-b"},
                             {"pci", "0000:11:00.0"},
                             {"mig", {{{"index", 0}, {"name", "1g"}, {"uuid", "MIG-slice"}}}}}});
    const auto foreign = script.writer.series({std::string(record::series::kGpuForeign), "bytes", "gpu1"});
    script.writer.add_point(foreign, {kStart + ms(1500), 500});
    script.note({{"type", "device"}, {"kind", "cuda"}, {"index", 0}, {"uuid", uuid}, {"pci", pci}});
    script.end(2000);
    const Signals signals = read_signals(record::Reader(own));
    EXPECT_EQ(signals.gpu_capability, "9.0") << uuid;
    EXPECT_FALSE(signals.gpu_memory_used) << uuid;
    EXPECT_FALSE(signals.gpu.shared) << uuid;
  }
}

TEST_F(SignalsOfDevices, MemoryIsThatOfTheSlice) {
  Script script(folder());
  write_two_gpus(script, {});
  const auto slice = [](int index, const char* uuid, int bytes) {
    return nlohmann::json{{"index", index}, {"uuid", uuid}, {"memory_bytes", bytes}};
  };
  script.writer.set_meta(record::meta::kGpus, {{{"index", 0}, {"memory_bytes", 1000}, {"uuid", "GPU-a"}},
                                               {{"index", 1},
                                                {"memory_bytes", 1000},
                                                {"uuid", "GPU-b"},
                                                {"mig", {slice(0, "MIG-x", 100), slice(2, "MIG-y", 400)}}}});
  for (const auto& [subject, bytes] : {std::pair("gpu1/mig0", 90.0), std::pair("gpu1/mig2", 300.0)}) {
    const auto memory = script.writer.series({std::string(record::series::kGpuMemory), "bytes", subject});
    script.writer.add_point(memory, {kStart + ms(1500), bytes});
  }
  script.note({{"type", "device"}, {"kind", "cuda"}, {"index", 0}, {"uuid", "MIG-y"}});
  script.end(2000);
  const Signals signals = read();
  EXPECT_EQ(signals.gpu.memory_bytes, 400);
  EXPECT_NEAR(*signals.gpu_memory_used, 0.75, 1e-9);
  EXPECT_FALSE(signals.gpu.shared);
}

TEST_F(SignalsOfDevices, OrTheOneThatItsProcessesHoldMemoryOn) {
  Script script(folder());
  write_two_gpus(script, {{"gpu0", 90.0}, {"gpu1", 0.0}});
  script.end(2000);
  EXPECT_NEAR(*read().device_busy, 0.3, 1e-9);
}

TEST_F(SignalsOfDevices, TheBusiestGpuOfAMachineIsNotTakenForTheRunsOwn) {
  Script script(folder());
  write_two_gpus(script, {});
  script.end(2000);
  const Signals signals = read();
  EXPECT_FALSE(signals.device_busy);
  EXPECT_FALSE(signals.gpu_memory_used);
}

TEST_F(SignalsOfDevices, TheDevicesOwnPeriodIsWhatItsTimeIsAShareOf) {
  Script script(folder());
  write_waiting_run(script);
  script.effective("device", "cuda:0");
  for (const auto& [name, value] :
       {std::pair(record::series::kStepDevice, 0.060), std::pair(record::series::kStepDevicePeriod, 0.080)}) {
    const std::int64_t id = script.writer.series({std::string(name), "s", "pid 42"});
    for (std::int64_t second = 2; second < 15; ++second) {
      script.writer.add_point(id, {kStart + ms(second * 1000), value});
    }
  }
  script.writer.flush();
  EXPECT_NEAR(*read().step_s, 0.100, 1e-3);
  EXPECT_NEAR(*read().device_busy, 0.75, 1e-9);
}

TEST_F(SignalsOfDevices, StepsWhoseDeviceKeptUpAreAShareOfThoseLookedAt) {
  Script script(folder());
  write_waiting_run(script);
  script.note({{"type", "device"}, {"kind", "cuda"}, {"index", 0}, {"looked_at", 40}, {"kept_up", 30}});
  script.writer.flush();
  EXPECT_NEAR(*read().device_kept_up, 0.75, 1e-9);
}

}  // namespace
}  // namespace unidle::diagnose
