// What `unidle optimize -- CMD` is made of, but for the trials themselves.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "unidle/base/files.h"
#include "unidle/knobs/knob.h"
#include "unidle/tune/advice/code_changes.h"
#include "unidle/tune/advice/reach.h"
#include "unidle/tune/search/parity.h"
#include "unidle/tune/search/tuner.h"
#include "unidle/tune/testing/fake_runner.h"
#include "unidle/tune/trials/apply_runner.h"
#include "unidle/tune/trials/memory_watch.h"
#include "unidle/tune/trials/trial_record.h"
#include "unidle/tune/trials/trial_store.h"
#include "unidle/tune/trials/working_folder.h"

namespace unidle::tune {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ProgramTrials, HaveThirtyStepsAtLeast) {
  EXPECT_EQ(steps_of_trial(0.1, 10), 100);
  EXPECT_EQ(steps_of_trial(5, 10), 30);
  EXPECT_EQ(steps_of_trial(1e-9, 10), 100'000);
  EXPECT_EQ(steps_of_trial(0.1, 6, 50), 150) << "three epochs of 5 s";
  EXPECT_EQ(steps_of_trial(0.1, 6, 500), 60) << "three epochs would take too long";
}

TEST(ProgramTrials, TouchOnlyWhatCanBeChangedAndMatters) {
  EXPECT_TRUE(knobs::applies_at_run_time("loader.workers", "2"));
  EXPECT_TRUE(knobs::applies_at_run_time("precision.amp", "bf16"));
  EXPECT_TRUE(knobs::applies_at_run_time("precision.amp", "fp16"));
  EXPECT_FALSE(knobs::applies_at_run_time("compile.mode", "graph"));
  EXPECT_FALSE(knobs::applies_at_run_time("batch.size", "8"));
  EXPECT_FALSE(knobs::matters_on("cpu", "loader.pin_memory"));
  EXPECT_TRUE(knobs::matters_on("cuda", "loader.pin_memory"));
  EXPECT_FALSE(knobs::matters_on("cpu", "metrics.interval"));
  EXPECT_TRUE(knobs::matters_on("cpu", "loader.workers"));
}

TEST(ProgramTrials, LargerBatchesTakeFewerSteps) {
  ProgramPlan plan;
  plan.steps = 100;
  plan.settings = {{"batch.size", "4"}, {"batch.accumulation", "2"}};
  EXPECT_EQ(steps_with(plan, {{"loader.workers", "2"}}), 100);
  EXPECT_EQ(steps_with(plan, {{"batch.size", "8"}, {"batch.accumulation", "1"}}), 100);
  EXPECT_EQ(steps_with(plan, {{"batch.size", "8"}}), 50);
  EXPECT_EQ(steps_with(plan, {{"batch.size", "400"}}), 16);
  EXPECT_EQ(steps_with(plan, {{"batch.size", "1"}}), 400);
}

TEST(Reach, WordsOfTheCommandSayWhatCannotBeChangedInARunningProgram) {
  const std::vector<std::string> command = {"python", "train.py", "--batch-size", "4", "--workers=0"};
  const Reach found = reach(command, {{"batch.size", "16"}, {"loader.workers", "2"}});
  EXPECT_THAT(found.command, ElementsAre("python", "train.py", "--batch-size", "16", "--workers=0"));
  EXPECT_EQ(found.at_run_time, (knobs::Settings{{"loader.workers", "2"}}));
  EXPECT_EQ(reach({"python", "train.py", "--mixed_precision", "no"}, {{"precision.amp", "fp16"}}).command,
            (std::vector<std::string>{"python", "train.py", "--mixed_precision", "fp16"}))
      << "it has a scaler";
  EXPECT_EQ(reach({"python", "train.py"}, {{"precision.amp", "fp16"}}).at_run_time,
            (knobs::Settings{{"precision.amp", "fp16"}}));
  EXPECT_EQ(reach({"python", "train.py"}, {{"batch.size", "16"}}).at_run_time, (knobs::Settings{{"batch.size", "16"}}))
      << "the shim says why not";
  EXPECT_EQ(reach({"python", "train.py"}, {{"metrics.interval", "50"}}).at_run_time,
            (knobs::Settings{{"metrics.interval", "50"}}));
  EXPECT_EQ(reach({"python", "train.py", "--log-interval", "1"}, {{"metrics.interval", "50"}}).command.back(), "50");
  EXPECT_EQ(reach({"python", "train.py", "--log-interval", "200"}, {{"metrics.interval", "50"}}).command.back(), "200")
      << "what is read in each step is not what it logs";
  EXPECT_TRUE(reaches(command, "batch.size", "8"));
  EXPECT_FALSE(reaches({"python", "train.py"}, "batch.size", "8"));
  EXPECT_EQ(run_command({{"batch.size", "16"}}, {"python", "train.py", "--batch-size", "4"}),
            "python train.py --batch-size 16");
}

TEST(Reach, BatchAndAccumulationAreChangedTheSameWay) {
  const knobs::Settings changes = {{"batch.size", "16"}, {"batch.accumulation", "1"}};
  const std::vector<std::string> both = {"python", "train.py", "--batch-size", "4", "--accumulation-steps", "4"};
  EXPECT_EQ(reach(both, changes).command.back(), "1");
  EXPECT_TRUE(reach(both, changes).at_run_time.empty());
  const std::vector<std::string> one = {"python", "train.py", "--batch-size", "4"};
  EXPECT_EQ(reach(one, changes).command, one) << "the count stands in the program: the size is changed there too";
  EXPECT_EQ(reach(one, changes).at_run_time, changes);
}

record::Step step(std::int64_t process, double begin_s, double seconds, std::int64_t samples) {
  record::Step made;
  made.process = process;
  made.t_ns = static_cast<std::int64_t>(begin_s * 1e9);
  made.duration_ns = static_cast<std::int64_t>(seconds * 1e9);
  made.samples = samples;
  return made;
}

TEST(TrialRecord, RateLeavesOutWarmUpAndCountsGaps) {
  std::vector<record::Step> steps;
  for (int i = 0; i < 4; ++i) {
    steps.push_back(step(1, 100 + 10 * i, 10, 4));  // warm-up, slow
  }
  for (int i = 0; i < 12; ++i) {
    steps.push_back(step(1, 200 + 2 * i, 1, 4));  // a second of validation after each
  }
  EXPECT_DOUBLE_EQ(rate_after_warmup(steps), 12 * 4 / 23.0);
  const std::vector<record::Step> one = steps;
  for (record::Step other : one) {
    other.process = 2;
    steps.push_back(other);
  }
  EXPECT_DOUBLE_EQ(rate_after_warmup(steps), 2 * 12 * 4 / 23.0);
  EXPECT_EQ(rate_after_warmup({}), 0);
}

std::map<long long, double> losses(double level, double swing) {
  std::map<long long, double> found;
  for (int i = 0; i < 40; ++i) {
    found[i * 4] = level + (i % 2 == 0 ? swing : -swing);
  }
  return found;
}

TEST(TrialRecord, LossesThatDifferByChanceHaveAnError) {
  CommonLosses common;
  const auto first = common.read(losses(1.0, 0.4));
  const auto same = common.read(losses(1.0, 0.4));
  const auto other = common.read(losses(1.05, -0.4));
  const auto shifted = common.read(losses(1.05, 0.4));
  ASSERT_TRUE(first && same && other && shifted);
  EXPECT_EQ(first->error, 0);
  EXPECT_EQ(same->error, 0);
  EXPECT_GT(other->error, 0.1);
  EXPECT_NEAR(shifted->error, 0, 1e-9);
  EXPECT_FALSE(common.read({}));

  TrialResult before;
  before.loss = first->value;
  const auto parity_of = [&](const LossReading& reading) {
    TrialResult after;
    after.loss = reading.value;
    after.loss_error = reading.error;
    return check_parity(before, after, {{"loader.workers", "2"}}).held;
  };
  EXPECT_TRUE(parity_of(*same));
  EXPECT_TRUE(parity_of(*other)) << "random samples in another order";
  EXPECT_FALSE(parity_of(*shifted)) << "every single step is worse: that is no chance";
}

TEST(CodeChanges, NameTheLineAndTheCode) {
  const std::map<std::string, std::string> places = {
      {"loader", "train.py:81"}, {"model", "train.py:90"}, {"optimizer", "model.py:12"}};
  const std::vector<Change> changes = {{"loader.workers", "0", "2", "", std::nullopt},
                                       {"loader.pin_memory", "false", "true", "", std::nullopt},
                                       {"precision.amp", "off", "bf16", "", std::nullopt},
                                       {"optimizer.fused", "false", "true", "", std::nullopt}};
  const auto found = code_changes(changes, places, "cuda");
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].where, "train.py:81");
  EXPECT_EQ(found[0].code, "DataLoader(..., num_workers=2)");
  EXPECT_EQ(found[1].code, "DataLoader(..., pin_memory=True)");
  EXPECT_EQ(found[2].where, "train.py:90");
  EXPECT_THAT(found[2].code, HasSubstr("torch.autocast(\"cuda\", dtype=torch.bfloat16)"));
  EXPECT_EQ(found[3].where, "model.py:12");
  EXPECT_EQ(run_command({{"loader.workers", "2"}}, {"python", "my train.py", "--lr=1"}),
            "unidle run --apply loader.workers=2 -- python 'my train.py' --lr=1");
}

TEST(WorkingFolder, IsCopiedWhereThatIsSafe) {
  const TemporaryFolder scratch;
  const fs::path from = scratch.path() / "from";
  make_folders(from / "data");
  make_folders(from / ".unidle/runs");
  write_file_atomic(from / "train.py", "print()");
  write_file_atomic(from / "data/a.txt", "a");
  fs::create_symlink("data/a.txt", from / "link");
  EXPECT_FALSE(why_not_copied(from, {"python", "train.py"}));
  copy_folder(from, scratch.path() / "to");
  EXPECT_EQ(read_file(scratch.path() / "to/data/a.txt"), "a");
  EXPECT_TRUE(fs::is_symlink(scratch.path() / "to/link"));
  EXPECT_FALSE(fs::exists(scratch.path() / "to/.unidle"));

  EXPECT_THAT(why_not_copied(from, {"python", "../../train.py"}).value_or(""), HasSubstr("../../train.py"));
  fs::create_symlink("../elsewhere", from / "out");
  EXPECT_THAT(why_not_copied(from, {"python", "train.py"}).value_or(""), HasSubstr("out"));
  fs::remove(from / "out");
  fs::resize_file(from / "train.py", 300 << 20);
  EXPECT_THAT(why_not_copied(from, {"python", "train.py"}).value_or(""), HasSubstr("too large"));
}

TEST(WorkingFolder, BlanksWithoutEndAreReadOnce) {
  const TemporaryFolder scratch;
  const fs::path from = scratch.path() / "project";
  make_folders(from);
  make_folders(scratch.path() / "data");
  const std::string blanks(500'000, ' ');
  write_file_atomic(from / "train.py", "'..'" + blanks + ",\n'data'\n");
  EXPECT_THAT(named_siblings(from, {"python"}), ElementsAre("data"));
  write_file_atomic(from / "train.py", "'..'" + blanks + "'data' '..', data '..' '../' .../data 'a'..'/data'");
  EXPECT_THAT(named_siblings(from, {"python"}), ::testing::IsEmpty());
}

TEST(WorkingFolder, WhatLiesBesideItIsThereWhenItIsNamed) {
  const TemporaryFolder scratch;
  const fs::path from = scratch.path() / "project";
  make_folders(from);
  for (const char* name : {"data", "joined", "word", "unnamed"}) {
    make_folders(scratch.path() / name);
  }
  write_file_atomic(
      from / "train.py",
      "MNIST('../data'); open(os.path.join('..', \"joined\", 'x')); '../gone'; '../../word'; a.../unnamed");
  const std::vector<std::string> command = {"python", "train.py", "--extra=../word/x"};
  EXPECT_THAT(named_siblings(from, command), ElementsAre("data", "joined", "word"));
  EXPECT_FALSE(why_not_copied(from, command));
  const fs::path copy = copy_for_trial(from, command, scratch.path() / "trial");
  EXPECT_EQ(copy, scratch.path() / "trial/project");
  EXPECT_TRUE(fs::exists(copy / "train.py"));
  EXPECT_TRUE(fs::equivalent(copy / "../data", scratch.path() / "data"));
  EXPECT_FALSE(fs::exists(copy / "../unnamed"));
}

TrialResult kept_result() {
  TrialResult result = testing::at_rate(42.5);
  result.losses = {{8, 1.5}, {16, 1.25}};
  result.effective = {{"loader.workers", "2"}};
  result.refused = {{"cpu.threads", "why"}};
  result.step_rate = 50;
  result.metrics = {{"psnr", 25.5}};
  result.others_cpus = 0.5;
  result.suggestions = {{{{"loader.workers", "2"}}, "loader-no-workers", "how", 0.4}};
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
  const knobs::Settings two = {{"loader.workers", "2"}};
  {
    TrialStore store(home.path(), "a");
    Recalling first(clock, [](const knobs::Settings&) { return kept_result(); });
    ResumingRunner runner(first, store);
    runner.run(two, {});
    EXPECT_EQ(runner.resumed(), 0);
  }
  TrialStore store(home.path(), "a");
  Recalling second(clock, [](const knobs::Settings&) { return testing::at_rate(7); });
  ResumingRunner runner(second, store);
  const TrialResult known = runner.run(two, {});
  EXPECT_EQ(runner.resumed(), 1);
  EXPECT_EQ(known.rate, 42.5);
  EXPECT_EQ(known.losses, kept_result().losses);
  EXPECT_EQ(known.refused, kept_result().refused);
  EXPECT_EQ(known.others_cpus, 0.5);
  EXPECT_EQ(known.step_rate, 50);
  EXPECT_EQ(known.metrics, kept_result().metrics);
  ASSERT_EQ(known.suggestions.size(), 1u);
  EXPECT_EQ(known.suggestions[0].changes, two);
  ASSERT_EQ(second.recalled.size(), 1u) << "later losses are compared with this one's";
  EXPECT_EQ(runner.run(two, {}).rate, 7) << "the same settings a second time are another measurement";
  EXPECT_EQ(runner.run({}, {}).rate, 7);
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

TEST(MemoryWatch, EndsATrialThatLeavesTooLittle) {
  const TemporaryFolder root;
  make_folders(root.path() / "proc");
  const auto available = [&](const std::string& kib) {
    write_file_atomic(root.path() / "proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: " + kib + " kB\n");
  };
  available("4194304");
  EXPECT_EQ(memory_left(root.path()), 4ULL << 30);
  EXPECT_EQ(memory_to_keep(root.path()), (8ULL << 30) / 20);
  ::setenv("UNIDLE_HOST_ROOT", root.path().c_str(), 1);
  std::stop_source ending;
  {
    const MemoryWatch watch(ending);
    available("1024");
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    wake.wait_for(lock, ending.get_token(), std::chrono::seconds(30), [&] { return ending.stop_requested(); });
    EXPECT_TRUE(watch.tripped());
  }
  ::unsetenv("UNIDLE_HOST_ROOT");
  EXPECT_TRUE(ending.stop_requested());
}

const knobs::Settings kSettings = {{"loader.workers", "0"}, {"cpu.threads", "2"}};

TEST(ProgramTuner, ARefusedKnobIsReportedAndDoesNotCount) {
  unidle::testing::FakeClock clock;
  testing::FakeRunner runner(clock, [](const knobs::Settings& changes) {
    TrialResult result = testing::at_rate(100);
    if (changes.contains("loader.workers")) {
      result.rate = 200;  // faster for whatever reason, but not because of this
      result.refused["loader.workers"] = "given by position in the program";
    }
    return result;
  });
  Tuner tuner(runner, clock, kSettings, {{{{"loader.workers", "2"}}, "why", 0.5, false}}, {});
  const TunerOutcome outcome = tuner.run({});
  EXPECT_TRUE(outcome.changes.empty());
  EXPECT_THAT(outcome.not_taken, ElementsAre("loader.workers=2: given by position in the program"));
  EXPECT_EQ(outcome.trials.at(1).verdict, "not taken");
}

TunerOutcome tune_fastest(double first, double later) {
  unidle::testing::FakeClock clock;
  int trials = 0;
  testing::FakeRunner runner(clock, [&](const knobs::Settings& changes) {
    const double factor = changes.empty() ? 1 : ++trials == 1 ? first : later;
    return testing::at_rate(100 * factor);
  });
  TunerOptions options;
  options.verify_fastest = true;
  options.least_gain = 0.03;
  options.subject = "program";
  Tuner tuner(runner, clock, kSettings, {{{{"loader.workers", "2"}}, "why", 0.5, false}}, options);
  return tuner.run({});
}

TEST(ProgramTuner, NothingToGainComesWithAnInterval) {
  const TunerOutcome outcome = tune_fastest(1.01, 1.01);
  EXPECT_TRUE(outcome.changes.empty());
  EXPECT_TRUE(outcome.best.empty());
  ASSERT_TRUE(outcome.verification);
  EXPECT_NEAR(outcome.verification->ratio, 1.01, 1e-9);
  EXPECT_FALSE(outcome.verification->shown) << "one percent is not worth a change";
  EXPECT_THAT(outcome.conclusion, HasSubstr("nothing to gain: the fastest change tried is 1.01x"));
}

TEST(ProgramTuner, VerifyingTheFastestMayShowAGainThatItsTrialMissed) {
  const TunerOutcome outcome = tune_fastest(1.0, 1.5);
  ASSERT_EQ(outcome.changes.size(), 1u);
  EXPECT_EQ(outcome.changes[0].to, "2");
}

}  // namespace
}  // namespace unidle::tune
