#include "unidle/tune/trials/trial_store.h"

#include <gmock/gmock.h>

#include "unidle/base/files.h"
#include "unidle/base/testing/failing_disk.h"
#include "unidle/tune/testing/fake_runner.h"

namespace unidle::tune {
namespace {

namespace fs = std::filesystem;
using testing::FakeRunner;

TrialResult kept_result() {
  TrialResult result = testing::at_rate(42.5);
  result.losses = {{8, 1.5}, {16, 1.25}};
  result.effective = {{"loader.workers", "2"}};
  result.refused = {{"cpu.threads", "why"}};
  result.step_rate = 50;
  result.metrics = {{"psnr", 25.5}};
  result.others_cpus = 0.5;
  result.own_cpus = 1.5;
  result.suggestions = {{{{"loader.workers", 2}}, "loader-no-workers: how", kMeasuredFirst + 0.4, true}};
  return result;
}

class Recalling : public testing::FakeRunner {
 public:
  using FakeRunner::FakeRunner;
  void recall(const TrialResult& result) override { recalled.push_back(result); }
  std::vector<TrialResult> recalled;
};

TEST(TrialStore, ASearchThatWasKilledGoesOn) {
  const TemporaryFolder home;
  unidle::testing::FakeClock clock;
  const knobs::Settings two = {{"loader.workers", 2}};
  {
    TrialStore store(home.path(), "a");
    Recalling first(clock, [](const knobs::Settings&) { return kept_result(); });
    ResumingRunner runner(first, store);
    runner.run(two, 600, {});
    EXPECT_EQ(runner.resumed(), 0);
  }
  TrialStore store(home.path(), "a");
  Recalling second(clock, [](const knobs::Settings&) { return testing::at_rate(7); });
  ResumingRunner runner(second, store);
  const TrialResult known = runner.run(two, 600, {});
  EXPECT_EQ(runner.resumed(), 1);
  EXPECT_EQ(known.rate, 42.5);
  EXPECT_EQ(known.losses, kept_result().losses);
  EXPECT_EQ(known.refused, kept_result().refused);
  EXPECT_EQ(known.others_cpus, 0.5);
  EXPECT_EQ(known.own_cpus, 1.5);
  EXPECT_EQ(known.step_rate, 50);
  EXPECT_EQ(known.metrics, kept_result().metrics);
  ASSERT_EQ(known.suggestions.size(), 1u);
  EXPECT_EQ(known.suggestions[0].changes, two);
  EXPECT_EQ(known.suggestions[0].reason, "loader-no-workers: how");
  EXPECT_EQ(known.suggestions[0].promise, kMeasuredFirst + 0.4);
  EXPECT_TRUE(known.suggestions[0].safe);
  ASSERT_EQ(second.recalled.size(), 1u) << "later losses are compared with this one's";
  EXPECT_EQ(runner.run(two, 600, {}).rate, 7) << "the same settings a second time are another measurement";
  EXPECT_EQ(runner.run({}, 600, {}).rate, 7);
  EXPECT_FALSE(TrialStore(home.path(), "b").find(two, 0)) << "another program";
  store.clear();
  EXPECT_FALSE(store.find(two, 0));
}

TEST(TrialStore, KeepsHowLongTrialsOfAWorkloadAre) {
  const TemporaryFolder home;
  TrialStore store(home.path(), "a");
  EXPECT_FALSE(store.trial_plan());
  store.keep(TrialPlan{144, 49, 48.0, 3.5, true});
  const auto plan = store.trial_plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->samples, 144);
  EXPECT_EQ(plan->warmup_samples, 49);
  EXPECT_EQ(plan->epoch_samples, 48.0);
  EXPECT_EQ(plan->expected_s, 3.5);
  EXPECT_TRUE(plan->whole_epochs);
}

TEST(TrialStore, WhatCannotBeReadIsNotThere) {
  const TemporaryFolder home;
  TrialStore store(home.path(), "a");
  store.keep({}, 0, kept_result());
  for (const auto& file : fs::recursive_directory_iterator(home.path())) {
    if (file.is_regular_file()) {
      write_file_atomic(file.path(), R"({"ok": true})");
    }
  }
  EXPECT_FALSE(store.find({}, 0));
  EXPECT_FALSE(store.plan());
}

TEST(TrialStore, OnADiskThatRefusesATrialIsKeptOrForgotten) {
  int refusals = 0;
  unidle::testing::at_each_failure([&](unidle::testing::FailingDisk& disk) {
    const TemporaryFolder home;
    TrialStore(home.path(), "a").keep({}, 0, kept_result());
    TrialStore store(home.path(), "a", disk);
    TrialResult other = kept_result();
    other.rate = 7;
    store.keep({}, 0, other);
    const auto found = TrialStore(home.path(), "a").find({}, 0);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->rate, disk.failed() ? kept_result().rate : 7);
    refusals += disk.failed() ? 1 : 0;
    int files = 0;
    for (const auto& file : fs::recursive_directory_iterator(home.path())) {
      files += file.is_regular_file() ? 1 : 0;
    }
    EXPECT_EQ(files, 1) << "no half of one is left";
    store.keep({{"loader.workers", 2}}, 0, other);
    EXPECT_EQ(store.find({{"loader.workers", 2}}, 0).has_value(), !disk.failed()) << "it is not tried again";
  });
  EXPECT_GE(refusals, 10);
}

TEST(TrialStore, AnotherCodeIsAnotherSearch) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "train.py", "print(1)");
  const std::string before = search_identity({"python", "train.py"}, folder.path(), {});
  EXPECT_EQ(search_identity({"python", "train.py"}, folder.path(), {}), before);
  EXPECT_NE(search_identity({"python", "train.py", "-x"}, folder.path(), {}), before);
  Hardware other;
  other.cpus = 64;
  EXPECT_NE(search_identity({"python", "train.py"}, folder.path(), other), before);
  write_file_atomic(folder.path() / "train.py", "print(22)");
  EXPECT_NE(search_identity({"python", "train.py"}, folder.path(), {}), before);
}

}  // namespace
}  // namespace unidle::tune
