#include "unidle/diagnose/signals_from_logs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/diagnose/testing/log_signals.h"
#include "unidle/logs/job_files.h"

namespace unidle::diagnose::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
TEST_F(LogSignals, AGpuLogAloneGivesUtilisationAndNoCause) {
  const auto log =
      file("x.txt", "timestamp, utilization.gpu [%]\n2025/01/01 10:00:00.000, 10 %\n2025/01/01 10:00:10.000, 30 %\n");
  const Diagnosis diagnosis = diagnose_logs({log});
  EXPECT_EQ(diagnosis.device.kind, "cuda");
  EXPECT_NEAR(*diagnosis.device.busy, 0.2, 1e-9);
  EXPECT_EQ(diagnosis.verdict, Verdict::kUnknown);
  EXPECT_TRUE(diagnosis.findings.empty());
  EXPECT_TRUE(abstains(diagnosis, "loader-no-workers"));
  EXPECT_TRUE(abstains(diagnosis, "run-failed"));
  EXPECT_TRUE(abstains(diagnosis, "validation-dominates"));
}

/// Three steps of 10 ms that launch ten kernels of 95 us, and `more` in each.
std::string trace_of(int rank, const std::function<std::string(double begin)>& more) {
  std::string events = R"({"ph":"M","name":"process_name","pid":1})";
  int correlation = 0;
  for (const double begin : {0.0, 10000.0, 20000.0}) {
    events += fmt::format(R"(,{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#5","pid":1,"tid":1,"ts":{},)"
                          R"("dur":10000}})",
                          begin);
    for (int i = 0; i < 10; ++i) {
      ++correlation;
      events += fmt::format(R"(,{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},)"
                            R"("dur":20,"args":{{"correlation":{}}}}})",
                            begin + 20 + 100 * i, correlation);
      events += fmt::format(R"(,{{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":{},"dur":95,"args":)"
                            R"({{"device":0,"stream":7,"correlation":{}}}}})",
                            begin + 100 + 100 * i, correlation);
    }
    events += more(begin);
  }
  return fmt::format(R"({{"schemaVersion":1,"distributedInfo":{{"rank":{}}},"traceEvents":[{}]}})", rank, events);
}

std::string exchange(double begin, double length) {
  return fmt::format(R"(,{{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":9,"ts":{},"dur":{},)"
                     R"("args":{{"device":0,"stream":9}}}})",
                     begin, length);
}

TEST_F(LogSignals, ATraceOfThreeStepsNamesItsCause) {
  const auto alone = [&](const std::string& trace) { return diagnose_logs({file("t.json", trace)}); };
  const Diagnosis idle = alone(trace_of(0, [](double) { return ""; }));
  ASSERT_FALSE(idle.findings.empty());
  EXPECT_EQ(idle.findings.front().id, "host-elsewhere");
  EXPECT_THAT(answer(idle), HasSubstr("the trace does not show what it does then: profile with with_stack=True"));
  EXPECT_NEAR(*idle.findings.front().share, 0.9, 0.02);
  EXPECT_EQ(idle.verdict, Verdict::kOverheadBound);
  const Diagnosis exchanges = alone(trace_of(0, [](double begin) { return exchange(begin + 1000, 8900); }));
  ASSERT_FALSE(exchanges.findings.empty());
  EXPECT_EQ(exchanges.findings.front().id, "communication-bound");
  EXPECT_EQ(exchanges.verdict, Verdict::kCommunicationBound);
}

TEST_F(LogSignals, WorkThatIsNotReadIsSaidSo) {
  const auto log = file("t.json", R"([{"ph":"M","name":"process_name","pid":7,"args":{"name":"/device:GPU:0"}},)"
                                  R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":0,"dur":10},)"
                                  R"({"ph":"X","name":"fusion.1","pid":7,"tid":1,"ts":10,"dur":5}])");
  EXPECT_THAT(
      answer(diagnose_logs({log})),
      HasSubstr("Nothing is known about the device: the work of \"/device:GPU:0\" has a form that is not read."));
}

// The program's own log may count optimizer steps, the profiler batches; and the host runs ahead of the device.
TEST_F(LogSignals, ArithmeticIsRatedByTheTracesOwnSteps) {
  const auto trace = file(
      "t.json",
      R"({"traceEvents":[{"ph":"X","cat":"user_annotation","name":"ProfilerStep#5","pid":7,"tid":1,"ts":0,"dur":1000},)"
      R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":1,"ts":10,"dur":50,)"
      R"("args":{"Input type":["float","float"],"Input Dims":[[100,100],[100,100]]}},)"
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":1,"ts":20,"dur":5,)"
      R"("args":{"correlation":3}},{"ph":"X","cat":"kernel","name":"sgemm","pid":0,"tid":7,"ts":30,"dur":3970,)"
      R"("args":{"device":0,"correlation":3}}]})");
  std::string text;
  for (int step = 1; step <= 20; ++step) {
    text += fmt::format("2025-01-01 10:00:{:02} step {}/100 loss 0.5\n", 2 * step, step);
  }
  const Diagnosis diagnosis = diagnose_logs({trace, file("a.out", text)});
  ASSERT_TRUE(diagnosis.arithmetic);
  EXPECT_DOUBLE_EQ(diagnosis.arithmetic->flops_per_s, 2e6 / 4e-3);
}

TEST_F(LogSignals, AFirstStepThatFailsEndsTheStartUp) {
  const std::string start = "2025-01-01 10:00:00 start\n2025-01-01 10:00:10 data read\n2025-01-01 10:00:20 step 1/9\n";
  const std::string end =
      "Traceback (most recent call last):\n  File \"a.py\", line 1\ntorch.OutOfMemoryError: CUDA out of memory.\n";
  EXPECT_DOUBLE_EQ(diagnose_logs({file("a.out", start + end)}).time.startup, 20);
  EXPECT_DOUBLE_EQ(diagnose_logs({file("b.out", start + "step 2/9\nstep 3/9\n" + end)}).time.startup, 0);
}

TEST_F(LogSignals, ATraceOfCopiesAloneNamesThem) {
  std::string events;
  for (int i = 0; i < 10; ++i) {
    events += fmt::format(R"({}{{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoH","pid":0,"tid":7,)"
                          R"("ts":{},"dur":990,"args":{{"device":0,"stream":7,"bytes":1048576}}}})",
                          i == 0 ? "" : ",", 1000 * i);
  }
  const Diagnosis diagnosis = diagnose_logs({file("t.json", R"({"traceEvents":[)" + events + "]}")});
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings.front().id, "transfer-not-overlapped");
  EXPECT_EQ(diagnosis.verdict, Verdict::kTransferBound);
  EXPECT_NEAR(*diagnosis.findings.front().speedup_bound, 1, 0.01);  // no kernel runs behind which they could hide
}

TEST_F(LogSignals, OfTracesOfAllRanksTheOneThatComesLate) {
  // Rank 1 works 4 ms longer than the others, which wait for it in the exchange.
  const auto rank = [&](int number, double begin) {
    return file(fmt::format("rank{}.json", number),
                trace_of(number, [&](double step) { return exchange(step + begin, 9900 - begin); }));
  };
  const Diagnosis diagnosis = diagnose_logs({rank(0, 2000), rank(1, 7000), rank(2, 2000)});
  const auto found = std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                                  [](const Finding& finding) { return finding.id == "straggler-rank"; });
  ASSERT_NE(found, diagnosis.findings.end());
  EXPECT_THAT(found->evidence.front(), HasSubstr("rank 1"));
}

TEST_F(LogSignals, ALogThatEndsBeforeTheFirstStepIsOneByItsName) {
  const Diagnosis diagnosis = diagnose_logs({file("train.out", "reading data\n5 files\n")});
  EXPECT_EQ(diagnosis.outcome, Outcome::kUnknown);
  EXPECT_EQ(diagnosis.verdict, Verdict::kUnknown);
}

TEST_F(LogSignals, WhatIsNoLogIsRefusedWithItsName) {
  for (const std::string& bytes :
       {std::string(), std::string("key: value\n"), std::string("\0\1\2\3", 4), std::string(3'000'000, 'x'),
        std::string("{\"traceEvents\": [{\"ph\":\"X\""), std::string("\x1f\x8b\x08\x00garbage", 11)}) {
    const auto path = file("odd.txt", bytes);
    try {
      diagnose_logs({path});
      FAIL() << "nothing was noticed in " << bytes.substr(0, 20);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      EXPECT_EQ(error.subject(), path.string());
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST_F(LogSignals, EmptyFilesBesideAnotherArePassedOver) {
  EXPECT_EQ(diagnose_logs({file("a.err", ""), file("a.out", "epoch 1 loss 0.5\n")}).outcome, Outcome::kUnknown);
}

TEST_F(LogSignals, FilesOfAJobByNameAndTime) {
  file("gpu_utilization_77.log",
       "timestamp, utilization.gpu [%]\n2025/01/01 10:00:00.000, 10 %\n2025/01/01 12:00:00.000, 30 %\n");
  const auto near =
      file("run_20250101.log", "2025-01-01 10:01:00 epoch 1 loss 0.5\n2025-01-01 11:00:00 epoch 2 loss 0.4\n");
  file("other.log", "2025-01-01 10:20:00 epoch 1 loss 0.5\n");
  file("day_before.log", "2024-12-31 10:01:00 epoch 1 loss 0.5\n");
  file("gpu_utilization_177.log", "timestamp, utilization.gpu [%]\n2025/01/01 10:00:00.000, 10 %\n");
  const logs::JobFiles job = logs::find_job_files("77", folder_.path());
  EXPECT_THAT(job.by_name, ElementsAre(folder_.path() / "gpu_utilization_77.log"));
  EXPECT_EQ(job.by_time, near);
  EXPECT_THROW(logs::find_job_files("78", folder_.path()), Error);
  EXPECT_THROW(logs::find_job_files("x", folder_.path()), Error);
}

TEST_F(LogSignals, ASharedStepOfWhichDataIsStated) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text +=
        fmt::format("Epoch: [0][{:>4}/300]\tTime  1.000 ( 1.000)\tData  0.800 ( 0.800)\tLoss 5.0e+00 (5.0e+00)\n", i);
  }
  const Diagnosis diagnosis = diagnose_logs({file("a.log", text)});
  EXPECT_EQ(diagnosis.verdict, Verdict::kInputBound);
  ASSERT_TRUE(diagnosis.step);
  EXPECT_NEAR(diagnosis.step->input, 0.8, 1e-9);
  EXPECT_NEAR(diagnosis.step->other, 0.2, 1e-9);
  EXPECT_NEAR(diagnosis.steps_per_s.value_or(0), 1, 1e-9);
  EXPECT_NEAR(diagnosis.time.train, 300, 1);
  EXPECT_THAT(diagnosis.input_stated, HasSubstr("a.log:1"));
  EXPECT_THAT(answer(diagnosis), HasSubstr("waits 80 % of each step for data"));
  EXPECT_THAT(to_text(diagnosis, 200, false), HasSubstr("Step: input 80 % (as the log states"));
  EXPECT_THAT(to_text(diagnosis, 200, false), Not(HasSubstr("compute 0")));
  EXPECT_TRUE(abstains(diagnosis, "sync-each-step"));  // the rest of the step is unknown
  EXPECT_TRUE(abstains(diagnosis, "optimizer-not-fused"));
}

TEST_F(LogSignals, LittleStatedWaitIsNoCleanBill) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += fmt::format("Epoch: [0][{}/300] Time 1.000 (1.000) Data 0.010 (0.010) Loss 5.0 (5.0)\n", i);
  }
  const Diagnosis diagnosis = diagnose_logs({file("a.log", text)});
  EXPECT_EQ(diagnosis.verdict, Verdict::kUnknown);
  EXPECT_THAT(answer(diagnosis), HasSubstr("Waiting for data takes 1.0 % of each step"));
}

TEST_F(LogSignals, ABusyGpuHidesAStatedWait) {
  std::string text;
  std::string gpu = "timestamp, index, utilization.gpu [%]\n";
  for (int i = 0; i < 50; ++i) {
    text +=
        fmt::format("2025-01-01 10:00:{:02} Epoch: [0][{}/300] Time 1.0 (1.0) Data 0.8 (0.8) Loss 5.0 (5.0)\n", i, i);
    gpu += fmt::format("2025/01/01 10:00:{:02}.000, 0, 97 %\n", i);
  }
  const Diagnosis diagnosis = diagnose_logs({file("a.log", text), file("gpu.csv", gpu)});
  EXPECT_NE(diagnosis.verdict, Verdict::kInputBound);
}

TEST_F(LogSignals, MegatronsSamplesPerSecond) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += fmt::format(
        " [2024-03-05 10:00:{:02}] iteration {:>8}/     300 | consumed samples: {:>12} | elapsed time per iteration "
        "(ms): "
        "1000.0 | global batch size:    64 | lm loss: 1.0E+00 |\n",
        i, i, i * 64);
  }
  const Diagnosis diagnosis = diagnose_logs({file("a.log", text)});
  EXPECT_NEAR(diagnosis.samples_per_s.value_or(0), 64, 0.5);
  EXPECT_NEAR(diagnosis.time.train, 59, 1e-6);
}

TEST_F(LogSignals, GpusThatDidNothingAreNamed) {
  std::string gpu = "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n";
  for (int i = 0; i < 40; ++i) {
    for (int one = 0; one < 4; ++one) {
      gpu += fmt::format("2024/03/05 10:00:{:02}.123, {}, {} %, {} MiB, 81920 MiB\n", i, one, one == 0 ? 95 : 0,
                         one == 0 ? 70000 : 4);
    }
  }
  const Diagnosis diagnosis = diagnose_logs({file("gpu.csv", gpu)});
  EXPECT_THAT(answer(diagnosis), HasSubstr("GPU 1, 2, 3 did nothing"));
  EXPECT_THAT(diagnosis.device.how, HasSubstr("GPU 1, 2, 3 did nothing in all samples and held no memory"));
  EXPECT_THAT(diagnosis.device.how, HasSubstr("23.75 % busy on average"));
  EXPECT_TRUE(abstains(diagnosis, "device-unused"));
}

TEST_F(LogSignals, APerCentNowAndThenIsNoWork) {
  std::string gpu = "index, utilization.gpu [%]\n";
  for (int i = 0; i < 1000; ++i) {
    gpu += fmt::format("0, 90 %\n1, {} %\n", i == 500 ? 1 : 0);
  }
  EXPECT_THAT(diagnose_logs({file("gpu.csv", gpu)}).device.how, HasSubstr("GPU 1 did nothing (at most 1 %)"));
  EXPECT_THAT(diagnose_logs({file("gpu.csv", "index, utilization.gpu [%]\n0, 90\n1, 0\n")}).device.how,
              Not(HasSubstr("did nothing")));  // one sample
}

TEST_F(LogSignals, TroubleOfTheDriverIsToldWithItsTime) {
  const Diagnosis diagnosis = diagnose_logs(
      {file("gpu.csv",
            "timestamp, utilization.gpu [%]\n2025/01/01 10:00:00.000, 10 %\n2025/01/01 10:00:10.000, 30 %\n"
            "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.\n")});
  EXPECT_THAT(diagnosis.device.how, HasSubstr("after 2025-01-01 10:00:10 nvidia-smi said: Unable to determine"));
}

TEST_F(LogSignals, AnAmdGpu) {
  const Diagnosis diagnosis =
      diagnose_logs({file("gpu.csv", "device,GPU use (%)\ncard0,10\ndevice,GPU use (%)\ncard0,30\n")});
  EXPECT_EQ(diagnosis.device.kind, "rocm");
  EXPECT_NEAR(diagnosis.device.busy.value_or(0), 0.2, 1e-9);
}

class RealLogs : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("UNIDLE_SHARED");
    if (shared == nullptr) {
      GTEST_SKIP() << "UNIDLE_SHARED names no folder with real logs";
    }
    folder_ = fs::path(shared) / "real/recsys-slurm";
  }
  Diagnosis of_job(std::string_view id) const { return diagnose_logs(logs::find_job_files(id, folder_).all()); }
  fs::path folder_;
};

TEST_F(RealLogs, AnIdleGpuAndItsRunTogether) {
  const Diagnosis diagnosis = of_job("909648");
  EXPECT_NEAR(diagnosis.device.busy.value_or(0), 0.0215, 5e-5);
  EXPECT_THAT(diagnosis.device.how, HasSubstr("mean utilisation 2.15 %, at most 33 %"));
  EXPECT_THAT(diagnosis.device.how, HasSubstr("mean power 64.5 W"));
  EXPECT_EQ(diagnosis.verdict, Verdict::kValidationBound);
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings.front().id, "validation-dominates");
  EXPECT_THAT(evidence(diagnosis, "validation-dominates"), HasSubstr("238 validations of 1 min 35 s each, one every"));
  EXPECT_THAT(evidence(diagnosis, "validation-dominates"), HasSubstr("14.1 s of training"));
  EXPECT_TRUE(abstains(diagnosis, "loader-no-workers"));
}

TEST_F(RealLogs, ATimeLimit) {
  const Diagnosis diagnosis = of_job("52178");
  EXPECT_EQ(diagnosis.outcome, Outcome::kTimedOut);
  EXPECT_EQ(diagnosis.findings.front().id, "run-timed-out");
  EXPECT_NEAR(diagnosis.samples_per_s.value_or(0), 1810, 5);
  EXPECT_THAT(evidence(diagnosis, "run-timed-out"), HasSubstr("step 43 of 200"));
  EXPECT_THAT(evidence(diagnosis, "run-timed-out"), HasSubstr("6 h 56 min"));
  EXPECT_THAT(evidence(diagnosis, "run-timed-out"), HasSubstr("1,810 rows/s"));
}

TEST_F(RealLogs, AFailureThatClaimsSuccess) {
  const Diagnosis diagnosis = of_job("53480");
  EXPECT_EQ(diagnosis.outcome, Outcome::kFailed);
  EXPECT_EQ(diagnosis.findings.front().id, "run-failed");
  EXPECT_THAT(evidence(diagnosis, "run-failed"), HasSubstr("mapping values are not allowed here"));
  EXPECT_THAT(evidence(diagnosis, "run-failed"), HasSubstr("claims success"));
}

}  // namespace
}  // namespace unidle::diagnose::testing
