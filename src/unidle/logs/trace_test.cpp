#include "unidle/logs/trace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "unidle/base/error.h"
#include "unidle/logs/detail/spans.h"

namespace unidle::logs {
namespace {

std::string event(std::string_view category, std::string_view name, double begin, double duration, int thread = 1,
                  std::string_view args = "{}") {
  return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":7,"tid":{},"ts":{},"dur":{},"args":{}}})", category,
                     name, thread, begin, duration, args);
}

TraceSummary read(std::string_view bytes) {
  Source source("trace.json", bytes);
  return read_trace(source);
}

/// Two steps of 100 us: 40 us of input, then kernels on two streams that overlap.
std::string two_steps() {
  std::string events;
  for (const double begin : {1000.0, 1100.0}) {
    events += event("user_annotation", begin < 1100 ? "ProfilerStep#5" : "ProfilerStep#6", begin, 100) + ",";
    events += event("gpu_user_annotation", "ProfilerStep#5", begin + 50, 40, 0) + ",";
    events += event("cpu_op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", begin, 40) + ",";
    events += event("cuda_runtime", "cudaStreamSynchronize", begin + 80, 10) + ",";
    events += event("cpu_op", "Optimizer.step#AdamW.step", begin + 75, 10) + ",";
    events += event("kernel", "gemm", begin + 50, 20, 7, R"({"device":0,"stream":7})") + ",";
    events += event("kernel", "add", begin + 60, 20, 8, R"({"device":0,"stream":8})") + ",";
    events += event("gpu_memcpy", "Memcpy HtoD", begin + 85, 5, 7, R"({"device":0})") + ",";
  }
  events += R"({"ph":"M","name":"process_name","pid":7,"args":{"name":"python"}})";
  return R"({"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA A30","totalGlobalMem":25000000000,)"
         R"("computeMajor":8,"computeMinor":0}],"traceEvents":[)" +
         events + R"(],"traceName":"x.json"})";
}

TEST(Trace, BusyIsTheUnionOfIntervals) {
  const TraceSummary trace = read(two_steps());
  ASSERT_EQ(trace.devices.size(), 1U);
  EXPECT_NEAR(trace.window_s, 200e-6, 1e-12);
  EXPECT_NEAR(trace.devices.front().busy_s, 2 * 35e-6, 1e-12);
  EXPECT_EQ(trace.kernel_count, 4);
  EXPECT_EQ(trace.kernels.size(), 2U);
  EXPECT_NEAR(trace.kernels[0].total_s, 40e-6, 1e-12);
}

TEST(Trace, LongestGapAndWhatTheHostDid) {
  const TraceSummary trace = read(two_steps());
  ASSERT_FALSE(trace.gaps.empty());
  EXPECT_NEAR(trace.gaps.front().seconds, 60e-6, 1e-12);  // from the copy of one step to the kernels of the next
  EXPECT_NEAR(trace.gaps.front().begin_s, 90e-6, 1e-12);
}

TEST(Trace, PartsOfStepsSumToOne) {
  const TraceSummary trace = read(two_steps());
  ASSERT_TRUE(trace.parts);
  EXPECT_EQ(trace.step_s.count, 2);
  EXPECT_NEAR(trace.parts->input, 0.4, 1e-9);
  EXPECT_NEAR(trace.parts->sync, 0.1, 1e-9);
  EXPECT_NEAR(trace.parts->optimizer, 0.05, 1e-9);  // the wait inside it counts as wait
  EXPECT_NEAR(trace.parts->rest, 0.45, 1e-9);
  EXPECT_EQ(trace.loader_in_process, true);
  EXPECT_EQ(trace.capability, "8.0");
  EXPECT_NEAR(*trace.syncs_per_step, 1, 1e-9);
}

TEST(Trace, ABareArrayOfEvents) {
  const TraceSummary trace = read("[" + event("kernel", "gemm", 0, 10) + "," + event("kernel", "gemm", 30, 10) + "]");
  EXPECT_NEAR(trace.devices.front().busy_s, 20e-6, 1e-12);
  EXPECT_NEAR(trace.window_s, 40e-6, 1e-12);
  EXPECT_FALSE(trace.parts);
}

TEST(Trace, WithoutADevice) {
  const TraceSummary trace = read("[" + event("cpu_op", "aten::add", 0, 10) + "]");
  EXPECT_TRUE(trace.devices.empty());
  EXPECT_EQ(trace.busiest(), nullptr);
}

TEST(Trace, DamagedOnesAreRefused) {
  const std::string whole = two_steps();
  for (const std::string& bytes :
       {whole.substr(0, whole.size() / 2), std::string("{}"), std::string("[]"), std::string("{\"traceEvents\":[}"),
        std::string("{\"traceEvents\":[]}"), std::string(""), std::string("[[[[")}) {
    try {
      read(bytes);
      FAIL() << "nothing was noticed in " << bytes.substr(0, 40);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      EXPECT_EQ(error.subject(), "trace.json");
    }
  }
}

TEST(Trace, OddEventsDoNotDisturb) {
  const TraceSummary trace = read(
      R"({"traceEvents":[{"ph":"X","name":"k","cat":"kernel","ts":"10","dur":"5","pid":0,"tid":7,"args":{"device":0,"a":[1,{"ts":3}]}},)"
      R"({"ph":"X","name":1,"cat":null,"ts":-1e300,"dur":1e308},{"ph":"X"},[],3,"x",null,{"ph":"X","ts":1,"dur":-5}]})");
  EXPECT_NEAR(trace.kernel_s, 5e-6, 1e-12);
}

TEST(SpanSet, JoinsMeetsAndTakesAway) {
  detail::SpanSet set;
  set.add(0, 10);
  set.add(5, 20);
  set.add(30, 40);
  set.add(3, 3);
  detail::SpanSet other;
  other.add(8, 32);
  EXPECT_DOUBLE_EQ(set.total(), 30);
  EXPECT_DOUBLE_EQ(set.within(other).total(), 14);
  EXPECT_DOUBLE_EQ(set.minus(other).total(), 16);
  EXPECT_DOUBLE_EQ(set.covered(15, 35), 10);
}

}  // namespace
}  // namespace unidle::logs
