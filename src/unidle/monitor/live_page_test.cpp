#include "unidle/monitor/live_page.h"

#include <gmock/gmock.h>

#include <cmath>

#include "unidle/base/clock.h"

namespace unidle::monitor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Snapshot snapshot_at(double t_s, double loss) {
  Snapshot now;
  now.t_ns = static_cast<std::int64_t>(t_s * kNsPerSecond);
  now.pid = 7;
  now.tree_cpu = 1.5;
  now.cpus_allowed = 2;
  now.run.emplace();
  now.run->folder = ".unidle/runs/20261130-120000-train";
  now.run->step = 40;
  now.run->samples_per_s = 640;
  now.run->input_share = 0.25;
  now.run->loss = loss;
  return now;
}

TEST(Course, KeepsTheWholeSessionInBoundedMemory) {
  Course course;
  constexpr int kSeconds = 10'000;
  for (int i = 0; i < kSeconds; ++i) {
    course.add(snapshot_at(i, i));
  }
  const Course::Line line = course.line("run.loss");
  EXPECT_LE(line.size(), Course::kMostPoints);
  EXPECT_GE(line.size(), Course::kMostPoints / 2 - 1);
  EXPECT_EQ(course.length_s(), kSeconds - 1);
  for (const auto& [t, value] : line) {  // the loss is the time: a mean of readings is at the mean of their times
    EXPECT_NEAR(value, kSeconds - 1 + t, 1e-6);
  }
  EXPECT_GT(line.back().first, -20) << "the newest readings are in it";
}

TEST(Course, AFigureThatIsAbsentForATimeHasNoValuesThere) {
  Course course;
  Snapshot without = snapshot_at(1, 0);
  without.run.reset();
  course.add(snapshot_at(0, 3));
  course.add(without);
  course.add(snapshot_at(2, 1));
  const Course::Line line = course.line("run.loss");
  ASSERT_EQ(line.size(), 3U);
  EXPECT_EQ(line.front(), (std::pair{-2.0, 3.0}));
  EXPECT_TRUE(std::isnan(line[1].second)) << "the curve has a gap";
  EXPECT_EQ(line.back(), (std::pair{0.0, 1.0}));
  EXPECT_EQ(course.line("cpu").size(), 3U);
  course.add(snapshot_at(3, std::nan("")));
  EXPECT_TRUE(std::isnan(course.line("run.loss").back().second)) << "a loss that is no number has none either";
  EXPECT_TRUE(course.line("gpu0").empty());
}

LiveState state_of(Snapshot now) {
  LiveState state;
  state.course.add(snapshot_at(0, 2));
  state.course.add(now);
  state.now = std::move(now);
  state.verdict = "the CPU, which is the device here, idled";
  return state;
}

TEST(LivePage, ShowsFiguresCurvesAndProcesses) {
  Snapshot now = snapshot_at(5, 1.25);
  GpuNow& gpu = now.gpus.emplace_back();
  gpu.subject = "gpu0";
  gpu.name = "H200";
  gpu.memory_total_bytes = 150e9;
  gpu.reading.utilisation = 0.14;
  ProcessNow& process = now.processes.emplace_back();
  process.pid = 4711;
  process.name = "train.py";
  process.state = 'R';
  now.run->processes = {{4711, 0.2}, {4712, 0.3}};
  const std::string html = live_content(state_of(now), Language::kEnglish);
  EXPECT_THAT(html, AllOf(HasSubstr("<h1>The CPU, which is the device here, idled</h1>"), HasSubstr("640"),
                          HasSubstr("20261130-120000-train"), HasSubstr("gpu0: kernels ran")));
  EXPECT_THAT(html, AllOf(HasSubstr("Throughput"), HasSubstr("line run1"), HasSubstr("line gpu"),
                          HasSubstr("line input"), HasSubstr("seconds (0 is now)")));
  EXPECT_THAT(html, AllOf(HasSubstr("4711"), HasSubstr("running"), HasSubstr("train.py"), HasSubstr("4712")));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(live_content(state_of(snapshot_at(5, std::nan(""))), Language::kEnglish), HasSubstr("<b>nan</b>"));
}

TEST(LivePage, OfNothingAtAll) {
  const std::string html = live_document({}, Language::kEnglish);
  EXPECT_THAT(html, AllOf(HasSubstr("Waiting for the first"), HasSubstr("connect-src 'self'"), HasSubstr("</html>")));
  LiveState idle;
  idle.now.t_ns = 1;
  EXPECT_THAT(live_content(idle, Language::kEnglish), HasSubstr("no run is under way"));
}

TEST(LivePage, TextOfTheMachineIsNoMarkup) {
  Snapshot now = snapshot_at(5, 1);
  now.run->folder = "<script>alert(1)</script>";
  now.processes.emplace_back().name = "<img src=x onerror=alert(1)>";
  now.gpus.emplace_back().name = "<b>H200";
  const std::string html = live_content(state_of(now), Language::kEnglish);
  EXPECT_THAT(html, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("<img")), Not(HasSubstr("<b>H200"))));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;H200"));
}

TEST(LivePage, SpeaksChinese) {
  const std::string html = live_content(state_of(snapshot_at(5, 1)), Language::kChinese);
  EXPECT_THAT(html, AllOf(Not(HasSubstr("seconds (0 is now)")), Not(HasSubstr("CPUs in use"))));
}

}  // namespace
}  // namespace unidle::monitor
