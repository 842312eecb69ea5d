#include "unidle/tune/search/batch_trials.h"

#include <gmock/gmock.h>

#include "unidle/tune/search/tuner.h"
#include "unidle/tune/testing/fake_runner.h"

namespace unidle::tune {
namespace {

using testing::at_rate;
using ::testing::ElementsAre;
using testing::FakeRunner;
using ::testing::HasSubstr;

const knobs::Settings kProgram = {{"batch.size", 4}, {"loader.workers", 0}};

TEST(BatchInTuner, AnotherEffectiveBatchIsFoundWhenItIsAllowed) {
  unidle::testing::FakeClock clock;
  FakeRunner runner(clock, [](const knobs::Settings& changes) {
    const long long size = knobs::overlaid(kProgram, changes).integer("batch.size");
    TrialResult result = at_rate(size <= 32 ? 100 + 10.0 * double(size) : 50);
    result.loss = 1 + double(size) / 64;  // fewer updates so far
    return result;
  });
  TunerOptions options;
  options.batches = batch_choices(kProgram, true);
  Tuner tuner(runner, clock, kProgram, {}, options);
  const TunerOutcome outcome = tuner.run({});
  ASSERT_EQ(outcome.changes.size(), 1u);
  EXPECT_EQ(outcome.changes[0].to, 32);
  EXPECT_NEAR(outcome.changes[0].gain.value_or(0), 420.0 / 140, 1e-6);
  EXPECT_THAT(outcome.changes[0].reason, HasSubstr("an effective batch of 32 instead of 4"));
  EXPECT_THAT(outcome.conclusion, HasSubstr("the effective batch size differs"));
}

TEST(BatchInTuner, ASizeThatDoesNotRunIsNotTheEnd) {
  unidle::testing::FakeClock clock;
  FakeRunner runner(clock, [](const knobs::Settings& changes) {
    const long long size = knobs::overlaid(kProgram, changes).integer("batch.size");
    TrialResult result = at_rate(double(size));
    result.ok = size < 16;
    return result;
  });
  TunerOptions options;
  options.batches = batch_choices(kProgram, true);
  Tuner tuner(runner, clock, kProgram, {}, options);
  EXPECT_EQ(tuner.run({}).best.at("batch.size"), 12);
}

TEST(BatchInTuner, ASizeThatTheProgramDoesNotTakeLeavesNothingBehind) {
  const knobs::Settings program = {{"batch.size", 4}, {"optimizer.lr", 0.001}};
  unidle::testing::FakeClock clock;
  FakeRunner runner(clock, [&](const knobs::Settings& changes) {
    const long long size = knobs::overlaid(program, changes).integer("batch.size");
    TrialResult result = at_rate(double(size));
    result.effective["batch.size"] = std::to_string(std::min(size, 16LL));
    return result;
  });
  TunerOptions options;
  options.batches = batch_choices(program, true);
  const TunerOutcome outcome = Tuner(runner, clock, program, {}, options).run({});
  EXPECT_EQ(outcome.best, (knobs::Settings{{"batch.size", 16}, {"optimizer.lr", 0.002}}));
  EXPECT_THAT(outcome.not_taken, ElementsAre(HasSubstr("asked for 32, but 16 is in effect"), ::testing::_));
}

/// Short trials fit 64 samples; a batch of the longest samples fits only `room` of them.
class LongestRunner : public FakeRunner {
 public:
  LongestRunner(unidle::testing::FakeClock& clock, long long room, bool vary)
      : FakeRunner(clock,
                   [vary](const knobs::Settings& changes) {
                     const long long size = size_of(changes);
                     TrialResult result = at_rate(double(size));
                     result.ok = size <= 64;
                     result.lengths_vary = vary;
                     return result;
                   }),
        room_(room) {}

  std::optional<TrialResult> run_longest(const knobs::Settings& changes, double, std::stop_token) override {
    probed.push_back(size_of(changes));
    TrialResult result = at_rate(1);
    result.ok = probed.back() <= room_;
    return result;
  }

  std::vector<long long> probed;

 private:
  static long long size_of(const knobs::Settings& changes) {
    return knobs::overlaid(kProgram, changes).integer("batch.size");
  }
  long long room_;
};

TEST(BatchInTuner, ASizeWithoutRoomForTheLongestSamplesIsNotTaken) {
  const auto taken = [](long long room, bool vary, std::vector<long long>& probed) {
    unidle::testing::FakeClock clock;
    LongestRunner runner(clock, room, vary);
    TunerOptions options;
    options.batches = batch_choices(kProgram, true);
    const TunerOutcome outcome = Tuner(runner, clock, kProgram, {}, options).run({});
    probed = runner.probed;
    return knobs::overlaid(kProgram, outcome.best).integer("batch.size");
  };
  std::vector<long long> probed;
  EXPECT_EQ(taken(64, true, probed), 64);
  EXPECT_THAT(probed, ElementsAre(64));
  EXPECT_EQ(taken(20, true, probed), 16);
  EXPECT_THAT(probed, ElementsAre(64, 32, 16));
  EXPECT_EQ(taken(2, true, probed), 4) << "of the present size nobody asks";
  EXPECT_THAT(probed, ElementsAre(64, 32, 16, 8));
  EXPECT_EQ(taken(2, false, probed), 64) << "all samples are alike";
  EXPECT_THAT(probed, ElementsAre());
}

TEST(SearchOfSomeKnobs, TriesNoOthers) {
  const std::vector<Proposal> proposals = {
      {{{"loader.workers", 2}}, "", 0.5, true},
      {{{"loader.pin_memory", true}, {"transfer.non_blocking", true}}, "", 0.4, true},
      {{{"optimizer.fused", true}}, "", 0.3, true}};
  const auto tried = [&](const std::set<std::string>& only) {
    unidle::testing::FakeClock clock;
    FakeRunner runner(clock, [](const knobs::Settings&) { return at_rate(100); });
    TunerOptions options;
    options.only = only;
    options.batches = batch_choices(kProgram, true);
    Tuner(runner, clock, kProgram, proposals, options).run({});
    std::set<std::string> knobs;
    for (const knobs::Settings& asked : runner.asked) {
      for (const auto& [knob, value] : asked) {
        knobs.insert(knob);
      }
    }
    return knobs;
  };
  EXPECT_THAT(tried({"loader.workers"}), ElementsAre("loader.workers"));
  EXPECT_THAT(tried({"loader.pin_memory"}), ElementsAre("loader.pin_memory", "transfer.non_blocking"))
      << "they go together";
  EXPECT_THAT(tried({"batch.size"}), ElementsAre("batch.size"));
  EXPECT_THAT(tried({}), ::testing::IsSupersetOf({"batch.size", "loader.workers", "optimizer.fused"}));
}

}  // namespace
}  // namespace unidle::tune
