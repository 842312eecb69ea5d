#include "unidle/tune/fix.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <regex>

#include "unidle/base/testing/thrown.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/scripted_record.h"
#include "unidle/tune/testing/whole_search.h"

namespace unidle::tune {
namespace {

using diagnose::testing::Script;
using ::testing::HasSubstr;
using ::testing::Not;
using unidle::testing::thrown_by;

using Scripted = std::function<void(Script&)>;

/// A run of train.py, which waits for samples that it makes itself.
class Fix : public diagnose::testing::ScriptedRecord {
 protected:
  void SetUp() override { write_file_atomic(temporary_.path() / "train.py", ""); }

  FixOptions record_run(const Scripted& edit = [](Script&) {}) {
    Script script(folder());
    diagnose::testing::write_waiting_run(script);
    script.writer.set_meta(record::meta::kCommand, {"sh", "train.py"});
    script.writer.set_meta(record::meta::kFolder, temporary_.path().string());
    edit(script);
    script.writer.flush();
    FixOptions options;
    options.record = folder();
    return options;
  }
};

bool is_tried(const FixPlan& plan, const std::string& knob) {
  return std::ranges::any_of(plan.attempts, [&](const Attempt& attempt) { return attempt.change.knob == knob; });
}

/// Two English words in a row that are not part of "knob=value", a path or a command.
std::string english_words_of(const std::string& text) {
  static const std::regex kWords("[^\\w./=-][a-z]{3,} [a-z]{3,}[^\\w./=-]");
  std::smatch found;
  return std::regex_search(text, found, kWords) ? found.str() : "";
}

TEST_F(Fix, WhatIsLeftToThePersonSaysTheOptionThatMakesIt) {
  FixPlan plan = plan_fix(record_run());
  plan.by_hand = {{"validation-dominates", "Validation takes long", "validate less often", "train.py:3"}};
  const auto text = [&] { return to_text(plan, false, 200, Language::kEnglish); };
  EXPECT_THAT(text(), HasSubstr("unidle run -- sh train.py && unidle compare"));
  plan.by_hand.front().words = "--eval-steps 130 on the command line";
  plan.by_hand.front().command = "sh train.py --eval-steps 130";
  EXPECT_THAT(text(), HasSubstr("Validation takes long: --eval-steps 130 on the command line: validate less often"));
  EXPECT_THAT(text(), HasSubstr("unidle run -- sh train.py --eval-steps 130 && unidle compare"));
}

TEST_F(Fix, TriesWhatTheFindingsPropose) {
  const FixPlan plan = plan_fix(record_run());
  ASSERT_FALSE(plan.attempts.empty());
  const Attempt& first = plan.attempts.front();
  EXPECT_EQ(first.change.knob, "loader.workers");
  EXPECT_EQ(first.change.from, 0);
  EXPECT_EQ(first.finding, "loader-no-workers");
  EXPECT_EQ(first.where, "naive.yaml:7");
  EXPECT_EQ(plan.command, (std::vector<std::string>{"sh", "train.py"}));
  EXPECT_EQ(plan.folder, temporary_.path());
  EXPECT_NEAR(plan.run_s, 5, 1e-9) << "2 s until the first step, then 30 of 100 ms";
  const Fixable found = fixable(folder(), diagnose::diagnose_record(folder()));
  EXPECT_EQ(found.changes, plan.attempts.size());
  EXPECT_TRUE(found.of_first);
}

TEST_F(Fix, HintsAreTriedWhereNothingElseIs) {
  const auto has_bf16 = [](Script& script) {
    script.writer.set_meta(record::meta::kHost,
                           {{"cpus_allowed", 4}, {"cpu_quota", nullptr}, {"cpu_flags", {"avx512_bf16"}}});
  };
  EXPECT_FALSE(is_tried(plan_fix(record_run(has_bf16)), "precision.amp")) << "samples are late, which is worth more";
  std::filesystem::remove_all(folder());
  Script busy(folder());
  has_bf16(busy);
  busy.note({{"type", "model"}, {"parameters", 600000}, {"convolutions", 0}, {"depthwise", false}});
  busy.effective("device", "cpu");
  busy.effective("precision.amp", "off");
  busy.span("startup", 0, 2000);
  for (int i = 0; i < 100; ++i) {
    busy.step(2000 + i * 100, 100, 0);
  }
  busy.cpu(4.0, 2000, 12000);
  busy.writer.set_meta(record::meta::kCommand, {"sh", "train.py"});
  busy.writer.set_meta(record::meta::kFolder, temporary_.path().string());
  busy.end(12000);
  FixOptions options;
  options.record = folder();
  const FixPlan plan = plan_fix(options);
  EXPECT_THAT(plan.answer, HasSubstr("Perhaps faster with precision.amp=bf16: unidle fix measures it."));
  ASSERT_EQ(plan.attempts.size(), 1u);
  EXPECT_EQ(plan.attempts.front().change.knob, "precision.amp");
}

TEST_F(Fix, TheCommandCanBeAnother) {
  FixOptions options =
      record_run([](Script& script) { script.writer.set_meta(record::meta::kCommand, {"sh", "gone.py"}); });
  options.command = {"sh", (temporary_.path() / "train.py").string(), "--epochs", "1"};
  const FixPlan plan = plan_fix(options);
  EXPECT_EQ(plan.command, options.command);
  EXPECT_EQ(plan.folder, std::filesystem::current_path()) << "where the user wrote it";
}

TEST_F(Fix, ABudgetForNoTrialIsRefusedBeforeItIsSpent) {
  FixOptions options = record_run();
  options.budget_s = 19;
  const auto error = thrown_by([&] { plan_fix(options); });
  EXPECT_EQ(error->code(), ErrorCode::kUsage);
  EXPECT_EQ(error->hint(), "--budget 30s leaves a margin");
  options.budget_s = 20;
  EXPECT_NO_THROW(plan_fix(options));
}

TEST_F(Fix, WithoutABudgetItIsThatOfTenRuns) {
  FixOptions options = record_run();
  EXPECT_EQ(plan_fix(options).budget_s, 300) << "five minutes at least: a run takes 5 s";
  options.budget_s = 90;
  EXPECT_EQ(plan_fix(options).budget_s, 90);
}

TEST_F(Fix, ACacheIsTriedInRunsOfTwoEpochs) {
  const auto repeats_samples = [](Script& script) {
    script.note({{"type", "data"}, {"samples_per_epoch", 320}});
    script.effective("batch.size", "8");
    script.effective("cache.features", "off");
    script.note({{"type", "loader"}, {"use", "train"}, {"id", 1}, {"batches", 100}, {"dataset_where", "train.py:1"}});
    script.note({{"type", "samples"},
                 {"id", 1},
                 {"count", 800},
                 {"seconds_total", 5.5},
                 {"again", {{"3", {"digest", 4, 0}}, {"5", {"other", 4, 0}}, {"7", {"third", 4, 0}}}}});
  };
  FixOptions options = record_run(repeats_samples);
  const FixPlan plan = plan_fix(options);
  ASSERT_TRUE(is_tried(plan, "cache.features")) << to_text(plan, false, 100, Language::kEnglish);
  EXPECT_EQ(plan.least_steps, 80);
  EXPECT_NEAR(plan.run_s, 12, 1e-9) << "with the validation between them";
  options.budget_s = 40;
  const FixPlan scarce = plan_fix(options);
  EXPECT_FALSE(is_tried(scarce, "cache.features"));
  EXPECT_TRUE(is_tried(scarce, "loader.workers"));
  EXPECT_EQ(scarce.least_steps, 30);
  EXPECT_THAT(scarce.notes, ::testing::Contains(
                                HasSubstr("cache.features=memory is not tried: its effect shows only in runs of 12 s; "
                                          "--budget 120s is enough for that")));
}

TEST_F(Fix, WhatCannotBeRunAgainIsRefused) {
  const auto command = [](std::vector<std::string> words) -> Scripted {
    return [words](Script& script) { script.writer.set_meta(record::meta::kCommand, words); };
  };
  const std::vector<std::pair<Scripted, std::string>> cases = {
      {[](Script& script) { script.end(15000, 1); }, "failed"},
      {[](Script& script) { script.writer.set_meta("kind", "optimize"); }, "search"},
      {[](Script& script) { script.writer.set_meta(record::meta::kFolder, "/nowhere/at/all"); }, "folder"},
      {[](Script& script) {
         script.note({{"type", "parallel"}, {"kind", "DistributedDataParallel"}, {"world_size", 2}, {"rank", 0}});
       },
       "2 processes"},
      {command({}), "which command"},
      {command({"no-such-program-here", "x"}), "no-such-program-here"},
      {command({"sh", "gone.sh"}), "gone.sh"},
      {command({"sh", "-"}), "standard input"},
      {command({"sh"}), "standard input"},
      {command({"sh", "train.py", "/dev/fd/63"}), "standard input"},
      {command({"sh", "train.py", "--token", "****"}), "secret"},
      {command({"torchrun", "train.py"}), "torchrun"},
      {command({"/usr/bin/srun", "python", "train.py"}), "srun"},
      {command({"unidle", "train", "naive.yaml"}), "workload"},
  };
  for (const auto& [edit, words] : cases) {
    const FixOptions options = record_run(edit);
    const auto error = thrown_by([&] { plan_fix(options); });
    ASSERT_TRUE(error) << words;
    EXPECT_EQ(error->code(), ErrorCode::kInput) << words;
    EXPECT_THAT(error->message(), HasSubstr(words));
    EXPECT_NE(error->hint(), "");
    EXPECT_EQ(fixable(folder(), diagnose::diagnose_record(folder())).changes, 0U) << words;
    std::filesystem::remove_all(folder());
  }
}

TEST_F(Fix, ALogHasNoCommand) {
  FixOptions options;
  options.record = temporary_.path() / "slurm-1.out";
  write_file_atomic(options.record, "epoch 1 loss 0.3\n");
  EXPECT_THAT(thrown_by([&] { plan_fix(options); })->message(), HasSubstr("is a log"));
}

TEST_F(Fix, FewStepsAreNoTraining) {
  Script script(folder());
  for (int i = 0; i < 7; ++i) {
    script.step(i * 100, 100, 60);
  }
  script.writer.set_meta(record::meta::kCommand, {"sh", "train.py"});
  script.writer.set_meta(record::meta::kFolder, temporary_.path().string());
  script.end(1000);
  FixOptions options;
  options.record = folder();
  EXPECT_THAT(thrown_by([&] { plan_fix(options); })->message(), HasSubstr("shows 7 training steps"));
}

TEST_F(Fix, AScriptThatIsNewerThanTheRecordIsSaid) {
  const auto started = [](const char* utc) -> Scripted {
    return [utc](Script& script) { script.writer.set_meta(record::meta::kStartedUtc, utc); };
  };
  EXPECT_THAT(plan_fix(record_run(started("2001-01-01T00:00:00Z"))).notes,
              ::testing::ElementsAre(HasSubstr("train.py was written after this record began")));
  std::filesystem::remove_all(folder());
  EXPECT_TRUE(plan_fix(record_run(started("2101-01-01T00:00:00Z"))).notes.empty());
}

TEST_F(Fix, WhatTheRecordedRunAppliedStays) {
  const FixPlan plan = plan_fix(record_run([](Script& script) {
    const nlohmann::json asked = {{"optimizer.fused", "true"}, {"loader.gather", "true"}, {"gone.knob", "3"}};
    script.writer.set_meta(record::meta::kRunOptions, {{"steps", 200}, {"apply", asked}});
    script.note({{"type", "apply"}, {"knob", "optimizer.fused"}, {"status", "taken"}});
    script.note({{"type", "apply"}, {"knob", "loader.gather"}, {"status", "refused"}, {"why", "no rows"}});
  }));
  EXPECT_EQ(plan.run_options, (knobs::RunOptions{200, {}, {{"optimizer.fused", true}}})) << "without what was refused";
  EXPECT_THAT(plan.notes, ::testing::Contains(HasSubstr("optimizer.fused=true")));
}

TEST_F(Fix, WhatIsNotTriedIsLeftToThePerson) {
  const FixPlan plan = plan_fix(record_run([](Script& script) {
    script.writer.set_meta(record::meta::kCommand, {"sh", "train.py", "--workers", "0"});
    const nlohmann::json accepted = {{"names", {"workers"}}, {"choices", {"0"}}};
    script.note({{"type", "arguments"}, {"program", "train.py"}, {"arguments", nlohmann::json::array({accepted})}});
  }));
  EXPECT_FALSE(is_tried(plan, "loader.workers")) << "the program accepts no other value";
  ASSERT_FALSE(plan.by_hand.empty());
  EXPECT_EQ(plan.by_hand.front().finding, "loader-no-workers");
  EXPECT_THAT(plan.by_hand.front().setting, HasSubstr("loader.workers: 0 -> "));
}

/// What a search of the plan's first change returns.
OptimizeResult search_result(const FixPlan& plan, double factor) {
  unidle::testing::FakeClock clock;
  testing::FakeRunner runner(
      clock, [&](const knobs::Settings& changes) { return testing::at_rate(changes.empty() ? 100 : 100 * factor); });
  TunerOptions options;
  options.of_program = true;
  options.verify_fastest = true;
  options.least_gain = 0.03;
  OptimizeResult result;
  result.outcome = Tuner(runner, clock, {{"loader.workers", 0}}, plan.proposals, options).run({});
  result.changes = result.outcome->changes;
  result.program.emplace().plan.device = "cpu";
  return result;
}

TEST_F(Fix, TheEndSaysTheGainAndHowToGetIt) {
  const FixPlan plan = plan_fix(record_run());
  OptimizeResult result = search_result(plan, 1.8);
  result.program->run = "unidle run --apply loader.workers=3 -- sh train.py";
  result.program->patch = "--- train.py\n";
  result.record = ".unidle/runs/1-fix";
  const std::string here = to_text(plan, result, plan.folder, 200, Language::kEnglish);
  EXPECT_THAT(here, HasSubstr("\n1.8x as fast (1.8 to 1.8), measured in 3 pairs.\n"
                              "The recorded run of 15.0 s would take about 9.4 s: its start-up stays.\n"));
  EXPECT_THAT(here, HasSubstr("\n  unidle run --apply loader.workers=3 -- sh train.py\n"));
  EXPECT_THAT(here, HasSubstr("\n  patch -p0 -i .unidle/runs/1-fix/changes.patch\n"));
  const std::string elsewhere = to_text(plan, result, "/", 200, Language::kEnglish);
  EXPECT_THAT(elsewhere, HasSubstr("\n  cd " + plan.folder.string() + " && unidle run --apply"));
  EXPECT_THAT(elsewhere, HasSubstr("\n  cd " + plan.folder.string() + " && patch -p0"));
  const nlohmann::json document = to_json(plan, result);
  EXPECT_EQ(document["schema"], "unidle.fix/1");
  EXPECT_EQ(document["tried"], true);
  EXPECT_EQ(document["run"], result.program->run);
  EXPECT_EQ(document["patch_file"], ".unidle/runs/1-fix/changes.patch");
  EXPECT_EQ(document["verification"]["shown"], true);
}

TEST_F(Fix, TheEndNamesTheChangeInTheWordsOfTheProgram) {
  FixPlan plan = plan_fix(record_run());
  const OptimizeResult result = search_result(plan, 1.8);
  ASSERT_FALSE(result.changes.empty());
  const knobs::Change& change = result.changes.front();
  plan.attempts = {{change, "loader-no-workers", "train.py:7"}};
  plan.attempts.front().change.in_program = knobs::InProgram{.words = "num_workers=3", .call = "DataLoader"};
  EXPECT_THAT(to_text(plan, result, plan.folder, 200, Language::kEnglish),
              HasSubstr("  - num_workers=3 in DataLoader(...), train.py:7 [" + change.knob + ": "));
}

TEST_F(Fix, WithoutAGainNothingIsToBeRun) {
  const FixPlan plan = plan_fix(record_run());
  const std::string text = to_text(plan, search_result(plan, 1), plan.folder, 200, Language::kEnglish);
  EXPECT_THAT(text, HasSubstr("nothing to gain"));
  EXPECT_THAT(text, Not(HasSubstr("--apply")));
}

TEST_F(Fix, SpeaksChinese) {
  FixOptions options = record_run();
  options.language = Language::kChinese;
  const FixPlan plan = plan_fix(options);
  std::filesystem::remove_all(folder());  // as it may be after the trials
  for (const double factor : {1.0, 1.8}) {
    const OptimizeResult result = search_result(plan, factor);
    const std::string text =
        to_text(plan, false, 200, Language::kChinese) + to_text(plan, result, "/", 200, Language::kChinese);
    EXPECT_EQ(english_words_of(text), "") << text;
    for (const LoggedTrial& trial : result.outcome->trials) {
      const std::string line = fix_line(trial, Language::kChinese);
      EXPECT_EQ(english_words_of(line), "") << line;
    }
  }
}

}  // namespace
}  // namespace unidle::tune
