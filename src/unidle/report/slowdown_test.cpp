#include "unidle/report/slowdown.h"

#include <gmock/gmock.h>

#include "unidle/report/testing/scripted_run.h"

namespace unidle::report {
namespace {

using ::testing::HasSubstr;
using testing::Script;
using testing::scripted_run;
using ::testing::SizeIs;

RunData run_of(double compute_ms, const std::string& name = "run") {
  Script script;
  script.compute_ms = compute_ms;
  script.seed = static_cast<std::uint64_t>(compute_ms * 10);
  RunData run = scripted_run(script);
  run.name = name;
  return run;
}

std::optional<Slowdown> found(const RunData& run, const std::vector<RunData>& earlier) {
  std::size_t next = 0;
  return slowdown_of(run, [&] { return next < earlier.size() ? std::optional(earlier[next++]) : std::nullopt; });
}

TEST(Slowdown, IsToldWithTheRatesBefore) {
  const auto told = found(run_of(90, "now"), {run_of(50, "second"), run_of(55, "first")});
  ASSERT_TRUE(told);
  EXPECT_THAT(told->before, SizeIs(2));
  const std::string words = in_words(*told, Translator{});
  EXPECT_THAT(words, HasSubstr("Slower than your last 2 runs of this command: 36"));
  EXPECT_THAT(words, HasSubstr("unidle compare second now"));
  EXPECT_THAT(in_words(*found(run_of(90), {run_of(50)}), Translator{}), HasSubstr("Slower than your last run of"));
}

TEST(Slowdown, IsNoneIfAnyEarlierRunWasAsSlow) {
  EXPECT_FALSE(found(run_of(90), {run_of(50), run_of(88)}));
  EXPECT_FALSE(found(run_of(50), {run_of(90)})) << "faster";
  EXPECT_FALSE(found(run_of(54), {run_of(50)})) << "within a tenth";
  EXPECT_FALSE(found(run_of(90), {}));
}

TEST(Slowdown, RatesBesideOtherProcessesDoNotCount) {
  Script script;
  script.compute_ms = 90;
  script.cores = 2;
  script.others_cores = 4;
  EXPECT_FALSE(found(scripted_run(script), {run_of(50)}));
  EXPECT_FALSE(found(run_of(90), {scripted_run(script), scripted_run(script)}));
}

TEST(Slowdown, SettingsThatDifferAreNamed) {
  RunData before = run_of(50);
  before.settings = {{"loader.workers", "4", "effective", ""}};
  RunData now = run_of(90);
  now.settings = {{"loader.workers", "0", "effective", ""}};
  const auto told = found(now, {before});
  ASSERT_TRUE(told);
  EXPECT_THAT(in_words(*told, Translator{}),
              HasSubstr("Settings that differ from the last one: loader.workers 4 -> 0."));
}

}  // namespace
}  // namespace unidle::report
