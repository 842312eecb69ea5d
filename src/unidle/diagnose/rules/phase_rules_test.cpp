// validation-dominates, checkpoint-dominates, startup-dominates.
#include <gmock/gmock.h>

#include "unidle/diagnose/detail/line_advice.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Signals validating(double validate_s) {
  Signals signals = healthy_cpu();
  signals.validations = 40;
  signals.time = {.startup = 5, .train = 95 - validate_s, .validate = validate_s, .checkpoint = 0, .other = 0};
  return signals;
}

TEST(ValidationDominates, IsMeasuredAgainstTheLoop) {
  const Finding finding = fired("validation-dominates", validating(60));
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_NEAR(*finding.share, 0.6, 1e-9);
  EXPECT_NEAR(*finding.speedup_bound, 1 / (1 - 0.6 * 38 / 40), 1e-9) << "2 of 40 stay";
  const knobs::Change* fix = fix_of(finding, "validation.interval");
  EXPECT_EQ(fix->from, 200);
  EXPECT_EQ(fix->to, 3086);  // 200 x 60/35 x 9: validation becomes a tenth of the loop
  EXPECT_EQ(fired("validation-dominates", validating(35)).severity, Severity::kWarning);
}

TEST(ValidationDominates, AtLeastOneValidationStays) {
  Signals signals = validating(60);
  signals.validations = 5;
  EXPECT_EQ(fix_of(fired("validation-dominates", signals), "validation.interval")->to, 800) << "four times as rare";
  signals.validations = 2;
  const Finding finding = fired("validation-dominates", signals);
  EXPECT_FALSE(finding.fixes.front().to) << "words alone";
  EXPECT_TRUE(finding.fixes.front().in_code);
}

TEST(ValidationDominates, DryRunsAreNotSavedByALongerInterval) {
  Signals signals = validating(30);
  signals.validations = 3;
  signals.dry_runs = {1, 2, false};
  const Finding finding = fired("validation-dominates", signals);
  EXPECT_EQ(fix_of(finding, "validation.interval")->to, 400) << "one of two stays";
  EXPECT_NEAR(*finding.share, 0.28, 1e-9);
  EXPECT_NEAR(*finding.speedup_bound, 1 / (1 - 0.14), 1e-9);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("2 validations of 14.0 s each")));
}

TEST(ValidationDominates, TheBoundIsThatOfTheIntervalInWholeUnits) {
  Signals signals = validating(20);  // rarer by 2.4
  signals.validations = 10;
  signals.dry_runs.emplace();
  signals.validation_where = "train.py:9";
  const Finding finding = fired("validation-dominates", signals);
  EXPECT_EQ(fix_of(finding, "validation.every")->to, 3);
  EXPECT_NEAR(*finding.speedup_bound, 1 / (1 - 0.2 * 7 / 10), 1e-9) << "3 of 10 stay";
}

TEST(AfterTraining, TestsOfTheTrainedModelCountBesideValidations) {
  Signals signals = validating(50);
  signals.after_training_s = 1;
  signals.tests = {30, 40, true};
  signals.hot = {{"train", "validate", "main.py:3", "test", 60, 63}, {"train", "after", "main.py:9", "save", 3, 63}};
  const Finding finding = fired("after-training", signals);
  EXPECT_EQ(finding.where, "main.py:3");
  EXPECT_NEAR(*finding.share, 0.41, 1e-9);
  EXPECT_EQ(fired("validation-dominates", signals).severity, Severity::kInfo) << "10 s of 55 remain";
  signals.tests->beside_validations = false;
  EXPECT_TRUE(silent("after-training", signals)) << "it may be the usual validation of a short run";
}

TEST(ValidationDominates, ThatWaitsForItsWorkersNeedsFewerOfThem) {
  Signals signals = validating(40);
  signals.validation_workers = 10;
  signals.validation_loader_where = "main.py:109";
  signals.cpus_allowed = 2;
  signals.validation_wait_s = 25;
  const Finding finding = fired("validation-dominates", signals);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("a loader with 10 workers")));
  EXPECT_THAT(finding.fixes.front().reason, HasSubstr("start fewer workers for validation"));
  EXPECT_EQ(finding.where, "main.py:109");
  signals.validation_wait_s = 15;
  EXPECT_EQ(fired("validation-dominates", signals).fixes.front().knob, "validation.interval");
}

TEST(ValidationDominates, ThatWaitsForSamplesAsTrainingDoesIsAHint) {
  Signals signals = validating(40);
  signals.validation_wait_s = 30;
  signals.step = StepShares{.input = 0.5, .compute = 0.5};
  const Finding finding = fired("validation-dominates", signals);
  EXPECT_EQ(finding.severity, Severity::kInfo);
  EXPECT_THAT(finding.evidence, Contains("75 % of that time waits for batches, as training does"));
  signals.step = StepShares{.input = 0.02, .compute = 0.98};
  EXPECT_EQ(fired("validation-dominates", signals).severity, Severity::kWarning);
}

TEST(ValidationDominates, AnIntervalBelowOneIsInHundredths) {
  Signals signals = validating(60);
  signals.settings["validation.interval"] = {"0.0446", "train.yaml:3", "0.0446"};
  EXPECT_EQ(fix_of(fired("validation-dominates", signals), "validation.interval")->to, 0.69) << "69 * 0.01 is more";
}

TEST(ValidationDominates, NearMissMissingAndZero) {
  EXPECT_EQ(fired("validation-dominates", validating(18)).severity, Severity::kInfo);
  EXPECT_TRUE(silent("validation-dominates", validating(14)));
  EXPECT_TRUE(silent("validation-dominates", validating(0)));
  Signals signals = validating(60);
  signals.validations = 0;
  EXPECT_TRUE(silent("validation-dominates", signals));
  signals.validations.reset();
  EXPECT_THAT(missing("validation-dominates", signals), HasSubstr("validates"));
}

TEST(ValidationDominates, OneAtTheEndIsAHint) {
  Signals signals = validating(60);
  signals.validations = 1;
  EXPECT_EQ(fired("validation-dominates", signals).severity, Severity::kInfo);
  signals.validation_workers = 16;
  signals.cpus_allowed = 2;
  signals.validation_wait_s = 50;
  const Finding finding = fired("validation-dominates", signals);
  EXPECT_EQ(finding.severity, Severity::kWarning) << "workers start in each validation";
  EXPECT_THAT(finding.fixes.front().reason, HasSubstr("start fewer workers"));
}

TEST(ValidationDominates, ALongerIntervalSavesNoTestOfTheTrainedModel) {
  Signals signals = validating(60);
  const double share = *fired("validation-dominates", signals).share;
  signals.tests = {1, 30, true};
  const Finding finding = fired("validation-dominates", signals);
  EXPECT_NEAR(*finding.share, share / 2, 1e-9);
  EXPECT_THAT(finding.evidence, Contains("validating the trained model after the last step takes another 30.0 s"));
  signals.tests = {1, 55, true};
  EXPECT_TRUE(silent("validation-dominates", signals));
  signals.tests = {*signals.validations, 60};
  EXPECT_EQ(fired("validation-dominates", signals).severity, Severity::kInfo) << "none between steps";
}

TEST(ValidationDominates, UnknownIntervalIsTheUsersToFind) {
  Signals signals = validating(60);
  signals.settings.erase("validation.interval");
  EXPECT_FALSE(fix_of(fired("validation-dominates", signals), "validation.interval")->to.has_value());
}

TEST(ValidationDominates, CallsThatCanBeLeftOutNeedNoInterval) {
  Signals signals = validating(60);
  signals.validation_where = "train.py:38";
  const Finding finding = fired("validation-dominates", signals);
  EXPECT_EQ(finding.where, "train.py:38");
  EXPECT_EQ(fix_of(finding, "validation.interval"), nullptr);
  EXPECT_EQ(fix_of(finding, "validation.every")->to, 16);  // 60/35 x 9
}

TEST(ValidationDominates, NamesTheLineThatCallsIt) {
  Signals signals = validating(60);
  signals.settings["validation.interval"].configured_at = "a.yaml:3";
  signals.hot = {{"train", "validate", "model.py:185", "encode", 90, 100}};
  EXPECT_EQ(fired("validation-dominates", signals).where, "a.yaml:3");
  signals.validation_called = "train.py:124";
  const Finding finding = fired("validation-dominates", signals);
  EXPECT_EQ(finding.where, "train.py:124") << "training runs the model's lines as well";
  EXPECT_THAT(finding.evidence, ::testing::Contains(::testing::HasSubstr("model.py:185")));
}

TEST(ValidationDominates, CallsThatCannotBeLeftOutSayWhy) {
  Signals signals = validating(60);
  signals.validation_kept = "the program may use what Experiment.vali returns";
  const Finding finding = fired("validation-dominates", signals);
  EXPECT_EQ(fix_of(finding, "validation.every"), nullptr);
  EXPECT_THAT(
      finding.evidence,
      ::testing::Contains(::testing::HasSubstr("refused for this program: the program may use what Experiment.vali")));
}

Signals saving(double checkpoint_s) {
  Signals signals = healthy_cpu();
  signals.time = {.startup = 5, .train = 95 - checkpoint_s, .validate = 0, .checkpoint = checkpoint_s, .other = 0};
  signals.checkpoints = 10;
  return signals;
}

TEST(CheckpointDominates, FiresNearMissMissingZero) {
  const Finding finding = fired("checkpoint-dominates", saving(20));
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_NEAR(*finding.share, 0.2, 1e-9);
  EXPECT_EQ(fired("checkpoint-dominates", saving(40)).severity, Severity::kCritical);
  EXPECT_TRUE(silent("checkpoint-dominates", saving(9)));
  EXPECT_TRUE(silent("checkpoint-dominates", saving(0)));
  Signals signals = saving(20);
  signals.checkpoints = 1;
  EXPECT_EQ(fired("checkpoint-dominates", signals).severity, Severity::kInfo);
  signals.checkpoints.reset();
  EXPECT_THAT(missing("checkpoint-dominates", signals), HasSubstr("checkpoints"));
}

TEST(CheckpointDominates, NamesTheLineAndTheInterval) {
  Signals signals = saving(20);
  EXPECT_FALSE(fired("checkpoint-dominates", signals).where.has_value());
  signals.checkpoint_where = "train.py:41";
  EXPECT_EQ(fired("checkpoint-dominates", signals).where, "train.py:41");
  EXPECT_THAT(fired("checkpoint-dominates", signals).evidence, Not(Contains(HasSubstr("the program saves"))));
  signals.checkpoint_every = 20;
  EXPECT_THAT(fired("checkpoint-dominates", signals).evidence, Contains("the program saves every 20 steps"));
  signals.checkpoint_each_epoch = true;
  EXPECT_THAT(fired("checkpoint-dominates", signals).evidence,
              Contains("the program saves after each epoch, every 20 steps"));
  signals.checkpoint_every = 1;
  EXPECT_THAT(fired("checkpoint-dominates", signals).evidence, Contains("the program saves after every step"));
}

TEST(CheckpointDominates, CountsWhatItsFunctionDoesBesides) {
  Signals signals = saving(6);
  signals.step = StepShares{.compute = 0.7, .other = 0.3};
  signals.hot = {{"train", "checkpoint", "train.py:9", "save", 9, 9},
                 {"train", "between", "train.py:10", "save", 50, 60},
                 {"train", "between", "train.py:30", "fit", 10, 60},
                 {"train", "train", "train.py:20", "fit", 140, 140}};
  const double train = *make_context(signals, {}).train;
  const Finding finding = fired("checkpoint-dominates", signals);
  EXPECT_NEAR(*finding.share, 0.06 + 0.25 * train, 1e-6);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("what the same functions do besides writing")));
  EXPECT_TRUE(silent("python-between-steps", signals)) << "5 % of the step are left";
  signals.hot.front().function = "fit";
  EXPECT_TRUE(silent("checkpoint-dominates", signals)) << "the loop itself saves";
  EXPECT_EQ(fired("python-between-steps", signals).where, "train.py:10");
  signals.hot.front().function = "save";
  signals.hot[1].hits = 4;
  EXPECT_TRUE(silent("checkpoint-dominates", signals)) << "few stack samples";
}

TEST(CheckpointDominates, AStricterPolicyWarns) {
  Policy policy;
  policy.checkpoint_share = policy.warning_share / 2;
  const Evaluation evaluation = ask("checkpoint-dominates", saving(7), policy);
  ASSERT_TRUE(std::holds_alternative<Finding>(evaluation));
  EXPECT_EQ(std::get<Finding>(evaluation).severity, Severity::kWarning);
}

Signals starting(double startup_s, double wall_s) {
  Signals signals = healthy_cpu();
  signals.wall_s = wall_s;
  signals.time = {.startup = startup_s, .train = wall_s - startup_s};
  return signals;
}

TEST(StartupDominates, AShortRunIsOnlyAHint) {
  EXPECT_EQ(fired("startup-dominates", starting(8, 20)).severity, Severity::kInfo);
  EXPECT_FALSE(fired("startup-dominates", starting(8, 20)).speedup_bound) << "a longer run hides it";
  EXPECT_NEAR(*fired("startup-dominates", starting(200, 400)).speedup_bound, 2.0, 1e-9);
  EXPECT_TRUE(silent("startup-dominates", starting(4, 20)));
  EXPECT_TRUE(silent("startup-dominates", starting(0, 20)));
}

TEST(StartupDominates, SaysWhereTheTimeWentWhereItWasSeen) {
  Signals signals = starting(5, 12);
  EXPECT_FALSE(fired("startup-dominates", signals).where) << "nobody looked";
  signals.hot = {{"train", "startup", "prepare.py:7", "tokenize", 60, 100},
                 {"train", "startup", "train.py:3", "<module>", 30, 100},
                 {"train", "input", "data.py:9", "decode", 500, 600}};
  const Finding finding = fired("startup-dominates", signals);
  EXPECT_EQ(finding.where, "prepare.py:7");
  EXPECT_THAT(finding.evidence, Contains("67 % of that time is spent in tokenize (prepare.py:7)"));
  EXPECT_THAT(finding.evidence, Contains("33 % of that time is spent in train.py:3"));
  signals.hot[0].caller = "main (train.py:40)";
  EXPECT_THAT(fired("startup-dominates", signals).evidence,
              Contains(HasSubstr("tokenize (prepare.py:7), called by main (train.py:40)")));

  signals.time.startup = 10;  // the samples are of half of it
  EXPECT_THAT(fired("startup-dominates", signals).evidence,
              Contains(HasSubstr("33 % of that time is spent in tokenize (prepare.py:7)")));
  signals.time.startup = 5;
  signals.hot = {{"train", "startup", "prepare.py:7", "tokenize", 9, 10}};
  EXPECT_FALSE(fired("startup-dominates", signals).where) << "too few looks";
  signals.hot = {{"train", "startup", "a.py:7", "<module>", 30, 100},
                 {"train", "startup", "a.py:9", "<module>", 20, 100},
                 {"train", "startup", "b.py:7", "<module>", 40, 100}};
  EXPECT_EQ(fired("startup-dominates", signals).where, "a.py:7") << "each file has a module's code of its own";
  signals.hot.clear();
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    signals.hot.push_back({"train", "startup", std::string(name) + ".py:7", name, 20, 100});
  }
  EXPECT_FALSE(fired("startup-dominates", signals).where) << "spread over several";
}

TEST(StartupDominates, MinutesAreAWarning) {
  EXPECT_EQ(fired("startup-dominates", starting(300, 1000)).severity, Severity::kWarning);
  EXPECT_TRUE(silent("startup-dominates", starting(300, 3600)));
  Signals signals = starting(300, 1000);
  signals.steps.reset();
  EXPECT_THAT(missing("startup-dominates", signals), HasSubstr("training began"));
}

TEST(StallsRecur, OfCodeBetweenTheStepsStandWithTheCode) {
  Signals signals = healthy_cpu();
  signals.step = StepShares{.compute = 0.3, .other = 0.7};
  signals.step_lengths_seen = true;
  account::Stalls stalls;
  stalls.every_steps = 16;
  stalls.each_s = 0.08;
  stalls.usual_step_s = 0.001;
  stalls.count = 59;
  stalls.total_s = 0.5 * signals.wall_s;
  stalls.part = account::kOther;
  signals.stalls = stalls;
  signals.stalls->part = account::kCompute;
  fired("stalls-recur", signals);
  signals.operations.emplace().previews = 59;
  EXPECT_TRUE(silent("stalls-recur", signals)) << "an agent plays";
  signals.stalls->part = account::kOther;
  signals.hot = {{"train", "between", "train.py:7", "rollout", 60, 63}};
  EXPECT_THAT(fired("python-between-steps", signals).evidence,
              Contains(HasSubstr("every 16 steps a step takes 80.0 ms longer")));
}

TEST(PythonBetweenSteps, BatchesMadeByHandCount) {
  Signals signals = healthy_cpu();
  signals.loader.reset();
  signals.settings.erase("loader.workers");
  signals.step = StepShares{.input = 0.18, .compute = 0.72, .other = 0.1};
  signals.hot = {{"train", "between", "train.py:9", "encode", 60, 66}, {"train", "train", "train.py:5", "f", 99, 99}};
  const Finding finding = fired("python-between-steps", signals);
  EXPECT_EQ(finding.where, "train.py:9");
  EXPECT_NEAR(*finding.share, 0.28 * *make_context(signals, {}).train, 1e-6);
  EXPECT_EQ(diagnose(signals).verdict, Verdict::kInputBound);
  signals.step = StepShares{.input = 0.1, .compute = 0.72, .other = 0.18};
  EXPECT_EQ(diagnose(signals).verdict, Verdict::kOverheadBound);
  signals.step->input = 0.01;
  EXPECT_EQ(fired("python-between-steps", signals).severity, Severity::kInfo) << "19 % of a step";
  signals.step->input = 0.1;
  signals.loader.emplace();
  EXPECT_EQ(fired("python-between-steps", signals).severity, Severity::kInfo) << "rules about loaders judge the input";
}

TEST(PythonBetweenSteps, SpreadOverManyFunctionsIsAHint) {
  Signals signals = healthy_cpu();
  signals.step = StepShares{.compute = 0.7, .other = 0.3};
  signals.hot = {{"train", "between", "train.py:9", "loss", 40, 100}, {"train", "train", "train.py:5", "f", 99, 99}};
  EXPECT_EQ(fired("python-between-steps", signals).severity, Severity::kWarning);
  signals.hot.front().hits = 30;
  EXPECT_EQ(fired("python-between-steps", signals).severity, Severity::kInfo) << "less than a tenth of the run";
}

TEST(PythonBetweenSteps, OneFunctionWithATenthOfTheRunIsAHint) {
  Signals signals = healthy_cpu();
  signals.step = StepShares{.compute = 0.85, .other = 0.15};
  signals.hot = {{"train", "between", "train.py:9", "metric", 90, 100}, {"train", "train", "train.py:5", "f", 99, 99}};
  EXPECT_EQ(fired("python-between-steps", signals).severity, Severity::kInfo);
  EXPECT_THAT(answer(diagnose(signals)), AllOf(StartsWith("Little holds the training up"), HasSubstr("train.py:9")));
  signals.device_busy.reset();
  EXPECT_THAT(answer(diagnose(signals)), StartsWith("Little holds this run up. ")) << "unknown how busy the CPUs are";
  signals.hot.front().hits = 30;
  EXPECT_TRUE(silent("python-between-steps", signals)) << "spread over many lines";
}

TEST(PythonBetweenSteps, AnEnvironmentIsPlayedSeveralTimesAtOnce) {
  Signals signals = healthy_cpu();
  signals.cpus_used = 1;
  signals.step = StepShares{.compute = 0.4, .other = 0.6};
  signals.hot = {{"train", "between", "train.py:9", "train", 60, 66}};
  EXPECT_EQ(fired("python-between-steps", signals).proposes, "") << "the rule's own advice";
  signals.called["train.py:9"] = "gymnasium.vector.vector_env.VectorEnv.step";
  EXPECT_THAT(fired("python-between-steps", signals).proposes, HasSubstr("several environments"));
  signals.called.clear();
  signals.hot.front().function = "SnakeEnv.reset";
  EXPECT_THAT(fired("python-between-steps", signals).proposes, HasSubstr("several environments"));
}

TEST(PythonBetweenSteps, OfSeveralEnvironmentsMoreArePlayed) {
  Signals signals;
  signals.operations.emplace().preview_samples = 1;
  const auto advice = [&] { return detail::advice_for_line(signals, {}, "train.py:9", "dist = Categorical(logits)"); };
  EXPECT_THAT(advice(), HasSubstr("play several environments at once"));
  signals.operations->preview_samples = 8;
  EXPECT_THAT(advice(), HasSubstr("play more environments at once"));
}

TEST(PythonBetweenSteps, WhatToDoDependsOnTheLine) {
  Signals signals;
  signals.hot = {{"train", "between", "train.py:9", "train", 60, 66}};
  const auto advice = [&](std::string_view text) { return detail::advice_for_line(signals, {}, "train.py:9", text); };
  EXPECT_EQ(advice("total = total + 1"), "");
  EXPECT_EQ(advice("for item in batch:"), "");
  EXPECT_THAT(advice("os.fsync(self.file.fileno())"), HasSubstr("let the operating system write"));
  EXPECT_THAT(advice("log.write(json.dumps(row)); log.flush()"), HasSubstr("let the operating system write"));
  EXPECT_THAT(advice("log.write(json.dumps(row))"), HasSubstr("collect what is written"));
  EXPECT_THAT(advice("with open(path, 'a') as file:"), HasSubstr("open the file once"));
  EXPECT_EQ(advice("picture = Image.open(path)"), "");
  EXPECT_EQ(advice("print(step, loss.item())"), "print every n-th step");
  EXPECT_THAT(advice("plt.savefig('loss.png')"), HasSubstr("draw every n-th step"));
  EXPECT_THAT(advice("torch.save(model.state_dict(), path)"), HasSubstr("save every n-th step"));
  EXPECT_THAT(advice("obs, reward, done, _ = env.step(action)"), HasSubstr("several environments"));
  EXPECT_THAT(advice("a = Categorical(logits=logits).sample().item()"), HasSubstr("one call of the model"));
  EXPECT_THAT(advice("auc = roc_auc_score(y.cpu(), p.cpu())"), HasSubstr("metrics on the device"));
  EXPECT_THAT(advice("losses.append(loss.item())"), HasSubstr("keep the values as tensors"));
  EXPECT_THAT(advice("found.append(p.cpu().numpy())"), HasSubstr("copy them once for many steps"));
  EXPECT_THAT(advice("batch = np.stack(rows)"), HasSubstr("index it for a whole batch"));
  signals.hot.front().function = "StepLog.write";
  EXPECT_THAT(advice(""), HasSubstr("collect what is written"));
  signals.hot.clear();
  signals.syncs = {{"item", "train.py:9", 100, 0, 0.0}};
  EXPECT_THAT(advice(""), HasSubstr("keep the values as tensors")) << "the record knows of the reads";
}

TEST(PythonBetweenSteps, FlushesAreAnotherRules) {
  Signals signals = healthy_cpu();
  signals.step = StepShares{.compute = 0.4, .other = 0.6};
  signals.hot = {{"train", "between", "train.py:9", "train", 60, 100},
                 {"train", "between", "train.py:7", "metric", 40, 100}};
  EXPECT_EQ(fired("python-between-steps", signals).where, "train.py:9");
  const double train_s = *make_context(signals, {}).train * signals.wall_s;
  signals.syncs = {{"gc", "train.py:9", *signals.steps, *signals.steps, 0.3 * train_s}};
  const Finding finding = fired("python-between-steps", signals);
  EXPECT_EQ(finding.where, "train.py:7");
  EXPECT_NEAR(*finding.share, 0.3 * *make_context(signals, {}).train, 1e-6);
  signals.syncs->front().seconds = 0.5 * train_s;
  EXPECT_TRUE(silent("python-between-steps", signals));
}

TEST(LoggingDominates, WhatIsRareAlreadyGetsNoInterval) {
  Signals signals = healthy_cpu();
  signals.steps = 100;
  signals.logging = LoggingFacts{120, 0.5 * signals.wall_s, "train.py:3", 100};
  EXPECT_EQ(fired("logging-dominates", signals).fixes.at(0).to, knobs::Value(std::int64_t{50}));
  signals.logging->where_calls = 4;
  EXPECT_TRUE(fired("logging-dominates", signals).fixes.at(0).in_code);
}

}  // namespace
}  // namespace unidle::diagnose::testing
