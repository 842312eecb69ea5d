#include "unidle/logs/gpu_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/logs/gpu_format.h"
#include "unidle/logs/sniff.h"

namespace unidle::logs {
namespace {

using ::testing::DoubleNear;

GpuLog read_as(std::string_view program, Source& source, const Window& window = {}) {
  for (const GpuFormat* format : all_gpu_formats()) {
    if (format->program == program) {
      return format->read(source, window);
    }
  }
  throw std::out_of_range(std::string(program));
}
GpuLog query(std::string_view bytes, const Window& window = {}) {
  Source source("gpu.csv", bytes);
  return read_as("nvidia-smi --query-gpu", source, window);
}
GpuLog dmon(std::string_view bytes) {
  Source source("dmon.txt", bytes);
  return read_as("nvidia-smi dmon", source);
}
GpuLog dcgmi(std::string_view bytes) {
  Source source("dcgmi.txt", bytes);
  return read_as("dcgmi dmon", source);
}

TEST(GpuQuery, UnitsInCells) {
  const GpuLog log = query(
      "timestamp, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], temperature.gpu\n"
      "2025/08/22 16:46:12.159, 0 %, 572 MiB, 81920 MiB, 63.63 W, 37\n"
      "2025/08/22 16:46:22.164, 33 %, 1144 MiB, 81920 MiB, 65.00 W, 38\n");
  ASSERT_EQ(log.gpus.size(), 1U);
  const GpuUse& use = log.gpus.front();
  EXPECT_EQ(use.samples, 2);
  EXPECT_EQ(use.idle_samples, 1);
  EXPECT_NEAR(use.utilisation.mean(), 0.165, 1e-12);
  EXPECT_NEAR(use.utilisation.most, 0.33, 1e-12);
  EXPECT_EQ(use.memory_used.most, 1144 * 1048576.0);
  EXPECT_NEAR(use.power_w.mean(), 64.315, 1e-9);
  EXPECT_EQ(*log.last_ns - *log.first_ns, 10'005'000'000);
}

TEST(GpuQuery, UnitsInTheHeaderAnyOrder) {
  const GpuLog log = query(
      "power.draw [W], index, utilization.gpu [%], memory.used [MiB], timestamp\n"
      "100.5, 0, 90, 1000, 2025/08/22 16:46:12.159\n"
      "[N/A], 1, 10, 2000, 2025/08/22 16:46:12.161\n"
      "[N/A], 1, [N/A], 2000, 2025/08/22 16:46:13.161\n");
  ASSERT_EQ(log.gpus.size(), 2U);
  EXPECT_EQ(log.gpus[0].id, "0");
  EXPECT_NEAR(log.gpus[0].utilisation.mean(), 0.9, 1e-12);
  EXPECT_FALSE(log.gpus[1].power_w);  // missing, not zero
  EXPECT_EQ(log.gpus[1].utilisation.count, 1);
  EXPECT_EQ(log.busiest()->id, "0");
}

TEST(GpuQuery, SeveralGpusWithoutAnId) {
  const GpuLog log = query(
      "timestamp, utilization.gpu [%]\n"
      "2025/08/22 16:46:12.159, 10 %\n2025/08/22 16:46:12.161, 20 %\n"
      "2025/08/22 16:46:22.159, 30 %\n2025/08/22 16:46:22.161, 40 %\n");
  ASSERT_EQ(log.gpus.size(), 2U);
  EXPECT_NEAR(log.gpus[0].utilisation.mean(), 0.2, 1e-12);
  EXPECT_NEAR(log.gpus[1].utilisation.mean(), 0.3, 1e-12);
}

TEST(GpuQuery, WithoutAHeader) {
  const GpuLog log = query("2025/08/22 16:46:12.159, 50 %, 3 %, 572 MiB, 81920 MiB, 63.63 W, 300.00 W\n");
  const GpuUse& use = log.gpus.front();
  EXPECT_NEAR(use.utilisation.mean(), 0.5, 1e-12);
  EXPECT_NEAR(use.memory_utilisation.mean(), 0.03, 1e-12);
  EXPECT_EQ(use.memory_used.most, 572 * 1048576.0);
  EXPECT_EQ(use.memory_total.most, 81920 * 1048576.0);
  EXPECT_EQ(use.power_limit_w.most, 300);
}

TEST(GpuQuery, BrokenLinesAndRepeatedHeaders) {
  const GpuLog log = query(
      "timestamp, utilization.gpu [%], power.draw [W]\n"
      "2025/08/22 16:46:12.159, 50 %, 63.63 W\n"
      "timestamp, utilization.gpu [%], power.draw [W]\n"
      "Unable to determine the device handle for GPU 0000:61:00.0: GPU is lost.\n"
      "2025/08/22 16:46:13.159, 150 %, 63.63 W\n"
      "2025/08/22 16:46:14.1");
  EXPECT_EQ(log.samples, 1);
  EXPECT_EQ(log.broken_lines, 3);
  EXPECT_THAT(log.complaint.value_or(""), ::testing::HasSubstr("GPU is lost"));
}

TEST(GpuQuery, LongestIdleTimeAndWindow) {
  const std::string bytes =
      "timestamp, utilization.gpu [%]\n"
      "2025/08/22 10:00:00.000, 50 %\n2025/08/22 10:00:10.000, 0 %\n2025/08/22 10:00:20.000, 0 %\n"
      "2025/08/22 10:00:30.000, 0 %\n2025/08/22 10:00:40.000, 90 %\n";
  const GpuLog log = query(bytes);
  EXPECT_EQ(log.gpus.front().longest_idle_ns, 20'000'000'000);
  const std::int64_t last = *log.last_ns;
  EXPECT_NEAR(query(bytes, {last - 10'000'000'000, last}).gpus.front().utilisation.mean(), 0.45, 1e-12);
}

TEST(GpuQuery, SaysWhenThereIsNoSample) {
  for (const char* bytes : {"", "timestamp, utilization.gpu [%]\n", "hello\nworld\n"}) {
    try {
      query(bytes);
      FAIL() << "nothing was noticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      EXPECT_EQ(error.subject(), "gpu.csv");
    }
  }
}

TEST(GpuDmon, ColumnsByName) {
  const GpuLog log = dmon(
      "# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk     fb\n"
      "# Idx      W      C      C      %      %    MHz    MHz     MB\n"
      "    0     63     37      -     10      2   1512   1410    572\n"
      "    1      -     37      -     80      2   1512   1410    572\n"
      "# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk     fb\n"
      "    0     65     37      -     30      2   1512   1410    572\n"
      "    1     64     3");
  ASSERT_EQ(log.gpus.size(), 2U);
  EXPECT_NEAR(log.gpus[0].utilisation.mean(), 0.2, 1e-12);
  EXPECT_NEAR(log.gpus[0].power_w.mean(), 64, 1e-12);
  EXPECT_FALSE(log.gpus[1].power_w);
  EXPECT_EQ(log.broken_lines, 1);
}

TEST(GpuDmon, DateAndTime) {
  const GpuLog log = dmon(
      "#Date       Time        gpu     sm    mem\n"
      "#YYYYMMDD   HH:MM:SS    Idx      %      %\n"
      " 20250822   16:46:12      0     10      0\n"
      " 20250822   16:46:13      0     10      0\n");
  EXPECT_EQ(*log.last_ns - *log.first_ns, 1'000'000'000);
}

constexpr std::string_view kDcgmi =
    "#Entity   GPUTL         SMACT         FBUSD         FBTTL         POWER         SMCLK\n"
    "ID\n"
    "GPU 0     20            0.101         1000          80000         101.531       1410\n"
    "GPU 1     N/A           N/A           2000          80000         N/A           1410\n"
    "#Entity   GPUTL         SMACT         FBUSD         FBTTL         POWER         SMCLK\n"
    "ID\n"
    "GPU 0     40            0.201         1000          80000         105.531       1410\n"
    "GPU-I 0   3             0.1           1             1             1             1\n"
    "GPU 1     10            0.0";

TEST(DcgmiDmon, FieldsByTheirShortNames) {
  const GpuLog log = dcgmi(kDcgmi);
  ASSERT_EQ(log.gpus.size(), 2U);
  EXPECT_EQ(log.gpus[0].id, "0");
  EXPECT_NEAR(log.gpus[0].utilisation.mean(), 0.3, 1e-12);
  EXPECT_EQ(log.gpus[0].memory_used.most, 1000 * 1048576.0);
  EXPECT_NEAR(log.gpus[0].power_w.mean(), 103.531, 1e-9);
  EXPECT_FALSE(log.gpus[1].utilisation);  // N/A is missing, not zero
  EXPECT_EQ(log.broken_lines, 2);         // a partition of a GPU, and the truncated end of the file
}

TEST(DcgmiDmon, TheProfilingFieldsStandInForUtilisation) {
  EXPECT_NEAR(dcgmi("# Entity  GRACT  TENSO\n      Id\nGPU 3  0.25  0.1\n").busiest()->utilisation.mean(), 0.25, 1e-12);
  EXPECT_THROW(dcgmi("#Entity GPUTL\nGPU 0  4000\n"), Error);
}

TEST(GpuFormat, IsToldByTheContent) {
  const auto program = [](std::string_view head) -> std::string_view {
    const Content content = sniff_bytes(head, "x");
    return content.gpu == nullptr ? "" : content.gpu->program;
  };
  EXPECT_EQ(program(kDcgmi), "dcgmi dmon");
  EXPECT_EQ(program("# gpu    pwr     sm\n# Idx      W      %\n    0     63     10\n"), "nvidia-smi dmon");
  EXPECT_EQ(program("timestamp, utilization.gpu [%]\n2025/08/22 16:46:12.159, 0 %\n"), "nvidia-smi --query-gpu");
  EXPECT_EQ(program("epoch 1, loss 0.5\nepoch 2, loss 0.4\n"), "");
  EXPECT_EQ(program("# Entity recognition\nepoch 1, loss 0.5\n"), "");
}

TEST(Sniff, ATraceIsKnownWhateverStandsBeforeItsEvents) {
  const std::string words(20'000, 'x');
  const std::vector<std::string> heads = {
      R"({"schemaVersion": 1, "traceEvents": []})",
      R"({"metadata": {"about": ")" + words + R"("}, "schemaVersion": 1, "deviceProperties": [{"id": 0}],)",
      R"([{"ph": "X", "name": "a"}])",
  };
  for (const std::string& head : heads) {
    EXPECT_EQ(sniff_bytes(head, "x").kind, Kind::kTrace) << head.substr(0, 40);
  }
  EXPECT_EQ(sniff_bytes(R"({"schemaVersion": 2, "message": "epoch 1"})", "x").kind, Kind::kText);
}

TEST(Sniff, AHoleWhereALineBeginsIsNoBinaryData) {
  const std::string hole(40, '\0');
  EXPECT_EQ(sniff_bytes("epoch 1\n" + hole + "epoch 2\n", "x").kind, Kind::kText);
  EXPECT_EQ(sniff_bytes(hole + "epoch 2\n", "x").kind, Kind::kText);
  for (const std::string& head : {"name" + hole + "ustar", "epoch 1\n" + hole, std::string("a\0\n\0", 4)}) {
    EXPECT_THROW(sniff_bytes(head, "x"), Error);
  }
}

TEST(OtherTable, NamesTheProgramThatPrintedIt) {
  const TemporaryFolder folder;
  const auto what = [&](const char* text) {
    const std::filesystem::path path = folder.path() / "table.txt";
    std::ofstream(path) << text;
    const auto table = other_table(path);
    return table ? table->what : "";
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(what("  JobID    State       Elapsed  TimeEff   CPUEff   MemEff\n 24  COMPLETED\n"),
              HasSubstr("reportseff"));
  EXPECT_THAT(what("JobID           JobName      State ExitCode\n"), HasSubstr("cuts"));
  EXPECT_THAT(what("JobID|State|Elapsed|TotalCPU\n24|TIMEOUT|01:00:00|00:01:00\n"), HasSubstr("list of jobs by sacct"));
  EXPECT_THAT(what("{\n  \"jobs\": [{\"account\": \"a\", \"allocation_nodes\": 1, \"association\": {}}]}\n"),
              HasSubstr("list of jobs by sacct"));
  EXPECT_THAT(what("  JOBID PARTITION  NAME  USER ST  TIME  NODES NODELIST(REASON)\n"), HasSubstr("squeue"));
  EXPECT_THAT(what("JobId=24 JobName=train\n   JobState=RUNNING Reason=None\n"), HasSubstr("scontrol"));
  EXPECT_THAT(what("Job ID: 24\nState: RUNNING\nCores: 1\n"), HasSubstr("not ended"));
  EXPECT_THAT(what("timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"), HasSubstr("processes"));
  EXPECT_THAT(what("node1  Tue Mar  5 10:00:00 2024  550.54\n[0] NVIDIA A100 | 40'C,  22 % |     4 / 81920 MB |\n"),
              HasSubstr("gpustat"));
  EXPECT_EQ(what("nothing of that\n"), "");
}

TEST(OwnMonitor, ColumnsByTheNamesThatScriptsGive) {
  const auto read = [](std::string_view bytes) {
    const GpuFormat* format = gpu_format_of(bytes);
    Source source("own.csv", bytes);
    return format == nullptr ? GpuLog() : format->read(source, Window{});
  };
  GpuLog log =
      read("timestamp,gpu_utilization,memory_used,memory_total\n1746556382.8,0, 0, 15360\n1746556383.8,50,10,15360\n");
  ASSERT_EQ(log.gpus.size(), 1U);
  EXPECT_DOUBLE_EQ(log.gpus[0].utilisation.mean(), 0.25);
  EXPECT_EQ(*log.last_ns - *log.first_ns, 1'000'000'000);
  log = read("Time,GPU_ID,Utilization\n1736203508.7,0,0\n1736203508.7,1,30\n1736203509.7,0,2\n");
  ASSERT_EQ(log.gpus.size(), 2U);
  EXPECT_DOUBLE_EQ(log.gpus[1].utilisation.mean(), 0.3);
  log = read("time,gpu_util\n1736203508,0.5\n1736203509,0.9\n");  // fraction or percent: undecidable
  ASSERT_EQ(log.gpus.size(), 1U);
  EXPECT_FALSE(log.gpus[0].utilisation);
  for (const char* other :
       {"timestamp,nv100,na100,ntotal\n1667903657,17,9,26\n", "Time,Utilization\n1736203508,30\n"}) {
    EXPECT_EQ(gpu_format_of(other), nullptr) << other;
  }
}

TEST(GpuQuery, RealLog) {
  const char* shared = std::getenv("UNIDLE_SHARED");
  if (shared == nullptr) {
    GTEST_SKIP() << "UNIDLE_SHARED names no folder with real logs";
  }
  Source source(std::filesystem::path(shared) / "real/recsys-slurm/gpu_utilization_909648.log");
  const GpuLog log = read_as("nvidia-smi --query-gpu", source);
  const GpuUse& use = log.gpus.front();
  EXPECT_EQ(log.gpus.size(), 1U);
  EXPECT_EQ(use.samples, 3625);
  EXPECT_EQ(log.broken_lines, 0);
  EXPECT_THAT(use.utilisation.mean(), DoubleNear(0.02152, 1e-5));
  EXPECT_THAT(use.utilisation.most, DoubleNear(0.33, 1e-9));
  EXPECT_THAT(use.power_w.mean(), DoubleNear(64.54, 0.01));
}

/// Reads bytes as a file whose format is detected.
GpuLog recognised(std::string_view bytes, std::string_view program) {
  const GpuFormat* format = gpu_format_of(bytes);
  if (format == nullptr) {
    ADD_FAILURE() << "of no format: " << bytes.substr(0, 60);
    return {};
  }
  EXPECT_EQ(format->program, program);
  Source source("gpu.csv", bytes);
  return format->read(source, {});
}

double busy(const GpuLog& log) { return log.gpus.empty() ? -1 : log.gpus.front().utilisation.mean(); }

TEST(GpuQuery, AHeaderNamesColumnsOfAnyNumberAndOrder) {
  for (const char* bytes : {
           "utilization.gpu [%]\n14 %\n16 %\n18 %\n",
           "utilization.gpu [%]\n14\n16\n18\n",
           "name, utilization.gpu [%]\nGeForce GTX 770, 14\nGeForce GTX 770, 16\nGeForce GTX 770, 18\n",
           "temperature.gpu, power.draw [W], utilization.gpu [%]\n52, 9, 14\n52, 9, 16\n52, [N/A], 18\n",
           "timestamp, index, utilization.gpu [%]\nnow, 0, 14 %\nnow, 0, 16 %\nlater, 0, 18 %\n",
       }) {
    const GpuLog log = recognised(bytes, "nvidia-smi --query-gpu");
    EXPECT_EQ(log.samples, 3) << bytes;
    EXPECT_NEAR(busy(log), 0.16, 1e-12) << bytes;
    EXPECT_EQ(log.broken_lines, 0) << bytes;
  }
}

TEST(GpuQuery, TextIsNoTable) {
  for (const char* text : {"name\nfoo\nbar\n", "index, count\n1, 2\n3, 4\n", "step 1, loss 0.5\nstep 2, loss 0.4\n",
                           "14 %\n15 %\n16 %\n", "timestamp, message\n1, hello\n2, world\n"}) {
    EXPECT_EQ(gpu_format_of(text), nullptr) << text;
  }
}

TEST(GpuQuery, SecondsSince1970) {
  const GpuLog log =
      recognised("timestamp, utilization.gpu [%]\n1709632800, 10 %\n1709632810, 20 %\n", "nvidia-smi --query-gpu");
  EXPECT_EQ(*log.last_ns - *log.first_ns, 10'000'000'000);
}

TEST(GpuQuery, TroubleOfTheDriverWithItsTime) {
  for (const char* trouble :
       {"Unable to determine the device handle for GPU 0000:61:00.0: GPU is lost.  Reboot the system",
        "2025/08/22 16:46:13.159, [GPU is lost]",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."}) {
    const GpuLog log = recognised("timestamp, utilization.gpu [%]\n2025/08/22 16:46:12.159, 50 %\n" +
                                      std::string(trouble) + "\nNo devices were found\n",
                                  "nvidia-smi --query-gpu");
    EXPECT_THAT(log.complaint.value_or(""), ::testing::StartsWith(trouble));
    EXPECT_EQ(log.complaints, 2);
    ASSERT_TRUE(log.complaint_ns) << trouble;
    EXPECT_GE(*log.complaint_ns, *log.first_ns);
  }
}

TEST(GpuQuery, NothingButTrouble) {
  const std::string bytes = "No devices were found\nNo devices were found\n";
  ASSERT_NE(gpu_format_of(bytes), nullptr);
  Source source("gpu.csv", bytes);
  try {
    gpu_format_of(bytes)->read(source, {});
    FAIL() << "nothing was noticed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("No devices were found"));
  }
}

TEST(GpuQuery, ATimeInAnotherFormIsNone) {
  const GpuLog log = recognised(
      "timestamp, name, utilization.gpu [%], temperature.gpu\n"
      "03-11-2026 15:13:16, Orin, 99, 45.218\n03-11-2026 15:14:16, Orin, 99, 46.156\n",
      "nvidia-smi --query-gpu");
  EXPECT_EQ(log.samples, 2);
  EXPECT_FALSE(log.first_ns);
}

TEST(RocmSmi, ColumnsByName) {
  for (const char* bytes : {
           "device,GPU use (%),GPU Memory Allocated (VRAM%),VRAM Total Memory (B),VRAM Total Used Memory (B)\n"
           "card0,14,10,1000,100\ncard0,18,10,1000,100\n",
           "WARNING: AMD GPU device(s) is/are in a low-power state.\n\ndevice,GPU use (%),GFX Activity\ncard0,14,7\n\n"
           "device,GPU use (%),GFX Activity\ncard0,18,9\n\n",
           "timestamp,gpu,gfx_activity,umc_activity,mm_activity,socket_power,gfx_voltage,soc_voltage,mem_voltage,gfx_0_"
           "clk,"
           "mem_0_clk,fclk_0_clk,socclk_0_clk,edge,hotspot,mem\n"
           "1789948800,0,14,0,N/A,300,N/A,N/A,N/A,2402,2000,1250,39,N/A,44,24\n"
           "1789948801,0,18,0,N/A,300,N/A,N/A,N/A,2402,2000,1250,39,N/A,44,24\n",
           "timestamp,gpu,gfx,mem,power_usage,vram_used\n1789948800,0,14,2,100,12000\n1789948801,0,18,4,200,14000\n",
       }) {
    const GpuLog log = recognised(bytes, "rocm-smi");
    EXPECT_EQ(log.samples, 2) << bytes;
    EXPECT_NEAR(busy(log), 0.16, 1e-12) << bytes;
  }
  const GpuLog log = recognised(
      "device,GPU use (%),VRAM Total Memory (B),VRAM Total Used Memory (B)\ncard0,14,1000,100\ncard1,0,1000,0\n",
      "rocm-smi");
  EXPECT_EQ(log.gpus.size(), 2U);
  EXPECT_EQ(log.gpus.front().memory_used.most, 100);
}

std::string page(int second, int utilisation, bool newer) {
  return fmt::format(
      "\n==============NVSMI LOG==============\n\nTimestamp                           : Tue Mar  5 10:00:{:02} 2024\n"
      "Driver Version                      : 535.104.05\nAttached GPUs                       : 2\n"
      "GPU 00000000:01:00.0\n    Product Name                    : NVIDIA A100\n"
      "    FB Memory Usage\n        Total                       : 81920 MiB\n        Used                        : 572 "
      "MiB\n"
      "    BAR1 Memory Usage\n        Total                       : 256 MiB\n"
      "    Utilization\n        {}                         : {} %\n        Memory                      : 3 %\n"
      "    {}\n        Power Draw                  : 63.63 W\n"
      "GPU 00000000:02:00.0\n    Utilization\n        {}                         : N/A\n        Memory                 "
      "     : 0 %\n",
      second, newer ? "GPU" : "Gpu", utilisation, newer ? "GPU Power Readings" : "Power Readings",
      newer ? "GPU" : "Gpu");
}

TEST(NvidiaSmiQ, PagesInALoop) {
  for (const bool newer : {false, true}) {
    const GpuLog log = recognised(page(0, 14, newer) + page(10, 18, newer), "nvidia-smi -q");
    ASSERT_EQ(log.gpus.size(), 2U);
    const GpuUse& use = log.gpus.front();
    EXPECT_EQ(use.id, "00000000:01:00.0");
    EXPECT_EQ(use.name, "NVIDIA A100");
    EXPECT_EQ(use.samples, 2);
    EXPECT_NEAR(use.utilisation.mean(), 0.16, 1e-12);
    EXPECT_NEAR(use.power_w.mean(), 63.63, 1e-12);
    EXPECT_EQ(use.memory_total.most, 81920 * 1048576.0);
    EXPECT_EQ(*use.last_ns - *use.first_ns, 10'000'000'000);
    EXPECT_FALSE(log.gpus.back().utilisation);
  }
}

TEST(NvidiaSmiQ, APageAtTheBeginOfARunsOutputIsText) {
  std::string text = page(0, 14, false);
  for (int i = 0; i < 20; ++i) {
    text += fmt::format("epoch {} loss 0.5\n", i);
  }
  EXPECT_EQ(gpu_format_of(text), nullptr);
}

TEST(GpuDmon, ProcessesAreRefusedByName) {
  const std::string bytes =
      "# gpu        pid  type    sm   mem   enc   dec   command\n# Idx          #   C/G     %     %     %     %   "
      "name\n"
      "    0      12345     C    45    20     -     -   python\n";
  Source source("pmon.log", bytes);
  try {
    gpu_format_of(bytes)->read(source, {});
    FAIL() << "nothing was noticed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("pmon"));
  }
}

}  // namespace
}  // namespace unidle::logs
