// The JSON document and the text for people.
#include "unidle/diagnose/diagnosis.h"

#include <gmock/gmock.h>

#include <sstream>

#include "unidle/base/terminal.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/rule.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> keys(const nlohmann::ordered_json& object) {
  std::vector<std::string> out;
  for (const auto& [key, value] : object.items()) {
    out.push_back(key);
  }
  return out;
}

Signals waiting_and_ignored() {
  Signals signals = waiting_cpu(0.6);
  signals.settings["precision.amp"] = {"true", "a.yaml:1", "off"};
  return signals;
}

TEST(Diagnosis, NamesThePackageThatALineCalls) {
  Signals signals = waiting_cpu(0.62);
  signals.settings["loader.workers"].configured_at = "train.py:41";
  const auto evidence = [&] { return diagnose(signals).findings.front().evidence; };
  ASSERT_EQ(diagnose(signals).findings.front().where, "train.py:41");
  EXPECT_THAT(evidence(), Not(::testing::Contains(HasSubstr("calls"))));
  signals.called["train.py:41"] = "lightning.Trainer.fit";
  EXPECT_THAT(evidence(), ::testing::Contains("train.py:41 calls lightning.Trainer.fit"));
  signals.called["train.py:41"] = "numpy.__getattr__";
  EXPECT_THAT(evidence(), Not(::testing::Contains(HasSubstr("calls")))) << "no line names it";
}

TEST(ToJson, HasTheFixedKeysInOrder) {
  const auto json = to_json(diagnose(waiting_and_ignored()));
  EXPECT_THAT(keys(json), ElementsAre("schema", "outcome", "verdict", "device", "throughput", "time", "step",
                                      "findings", "abstained"));
  EXPECT_EQ(json["schema"], "unidle.diagnosis/1");
  EXPECT_THAT(keys(json["device"]), ElementsAre("kind", "busy", "how"));
  EXPECT_THAT(keys(json["throughput"]), ElementsAre("samples_per_s", "steps_per_s"));
  EXPECT_THAT(keys(json["time"]), ElementsAre("startup", "train", "validate", "checkpoint", "other"));
  EXPECT_THAT(keys(json["step"]), ElementsAre("input", "transfer", "compute", "sync", "optimizer", "other"));
  ASSERT_EQ(json["findings"].size(), 2U);
  EXPECT_THAT(keys(json["findings"][0]),
              ElementsAre("id", "severity", "share", "speedup_bound", "evidence", "where", "fixes"));
  EXPECT_THAT(keys(json["findings"][0]["fixes"][0]), ElementsAre("knob", "from", "to", "class", "how"));
  ASSERT_FALSE(json["abstained"].empty());
  EXPECT_THAT(keys(json["abstained"][0]), ElementsAre("id", "missing"));
}

/// One busy thread on two CPUs.
Signals beside(double host_cpus_used, double run_delay) {
  Signals signals = waiting_cpu(0.6);
  signals.cpus_allowed = signals.cpus_online = 2;
  signals.cpus_used = 0.5;
  signals.host_cpus_used = host_cpus_used;
  signals.others_cpus_used = host_cpus_used - 0.5;
  signals.run_delay = run_delay;
  return signals;
}

TEST(Answer, BeginsWithTheCpusThatOthersTake) {
  const std::string sentence = answer(diagnose(beside(2, 0.5)));
  EXPECT_THAT(sentence, StartsWith("Other processes took 0.5 of the 2 CPUs of this run, which used 0.5"));
  EXPECT_THAT(sentence,
              HasSubstr("waited for more: measure again without them. Your training waits 60 % of each step"));
  EXPECT_THAT(answer(diagnose(beside(2, 0.1))), StartsWith("Your training waits")) << "its thread had a CPU";
  EXPECT_THAT(answer(diagnose(beside(1, 0.5))), StartsWith("Your training waits")) << "a CPU was free";
  Signals threads = beside(2, 0.5);
  threads.trainers = 1;
  set_effective(threads, "cpu.threads", "2");
  EXPECT_THAT(answer(diagnose(threads)), StartsWith("Other processes took 0.5")) << "one and a half CPUs are left";
  threads.run_delay = 0.9;
  EXPECT_THAT(answer(diagnose(threads)), HasSubstr("without them, or beside them with OMP_NUM_THREADS=1. Your"));
  threads.settings["cpu.threads"].effective_at = "train.py:9";
  EXPECT_THAT(answer(diagnose(threads)), HasSubstr("without them. Your")) << "a variable would change nothing";
  threads.cpus_online = 64;
  threads.host_cpus_used = 20;
  EXPECT_TRUE(silent("threads-oversubscribed", threads)) << "others use CPUs that are out of reach";
  Signals unknown = beside(2, 0);
  unknown.run_delay.reset();
  EXPECT_THAT(answer(diagnose(unknown)), StartsWith("Your training waits"));
}

TEST(Answer, NamesTheLineThatComputesMostOfAHealthyRun) {
  Signals signals = healthy_cpu();
  signals.hot = {{"train", "train", "models.py:314", "GraphSage.aggregate", 71, 100},
                 {"train", "train", "main.py:80", "train", 15, 100}};
  EXPECT_THAT(answer(diagnose(signals)), HasSubstr("while it trains. 71 % of its computing is at models.py:314."));
  signals.hot[0].hits = 40;
  EXPECT_THAT(answer(diagnose(signals)), Not(HasSubstr("of its computing"))) << "as in most models";
}

TEST(Answer, WhatOthersLengthenIsNoCause) {
  Signals signals = beside(2, 0.5);
  signals.step = StepShares{.compute = 0.7, .optimizer = 0.3};
  set_effective(signals, "optimizer.fused", "false");
  const auto severity = [&] {
    const Diagnosis diagnosis = diagnose(signals);
    const auto found = std::ranges::find(diagnosis.findings, "optimizer-not-fused", &Finding::id);
    return found == diagnosis.findings.end() ? Severity::kCritical : found->severity;
  };
  EXPECT_EQ(severity(), Severity::kInfo);
  signals.run_delay = 0.1;
  EXPECT_EQ(severity(), Severity::kWarning);
}

TEST(Answer, OthersAreTheOnlyCause) {
  Signals signals = beside(2, 1.4);
  set_input(signals, 0.01);
  signals.device_busy = 0.25;
  EXPECT_THAT(answer(diagnose(signals)), AllOf(StartsWith("Other processes took 1.4 of"),
                                               ::testing::EndsWith("without them. No other cause was found.")));
}

TEST(ToJson, UnknownIsNull) {
  const auto json = to_json(diagnose(Signals{}));
  EXPECT_TRUE(json["step"].is_null());
  EXPECT_TRUE(json["device"]["busy"].is_null());
  EXPECT_TRUE(json["throughput"]["samples_per_s"].is_null());
  EXPECT_EQ(json["verdict"], "unknown");
  EXPECT_EQ(json["outcome"], "unknown");
  const auto ignored = to_json(diagnose(waiting_and_ignored()))["findings"][1];
  EXPECT_EQ(ignored["id"], "setting-ignored");
  EXPECT_TRUE(ignored["share"].is_null());
  EXPECT_TRUE(ignored["speedup_bound"].is_null());
}

TEST(ToJson, RoundsWithoutBreakingTheSums) {
  Signals signals = healthy_cpu();
  signals.step = StepShares{.input = 1.0 / 3, .compute = 1.0 / 3, .optimizer = 1.0 / 3};
  const auto json = to_json(diagnose(signals));
  double step = 0;
  for (const auto& [key, value] : json["step"].items()) {
    step += value.get<double>();
  }
  EXPECT_NEAR(step, 1, 1e-3);
  EXPECT_EQ(json["step"]["input"], 0.3333);
  EXPECT_EQ(json["throughput"]["steps_per_s"], 11.11);
}

/// Two GPUs for an hour and a half: half an hour of start-up, an hour of training at 25 %.
Signals two_gpus() {
  Signals signals;
  signals.device_kind = "cuda";
  signals.device_busy = 0.25;
  signals.time = {.startup = 1800, .train = 3600};
  signals.ranks = {{.rank = 0, .step_s = 0.1}, {.rank = 1, .step_s = 0.1}};
  return signals;
}

TEST(Cost, IsThatOfAllGpus) {
  const auto json = to_json(diagnose(two_gpus()))["cost"];
  EXPECT_EQ(json["gpu_hours"], 3);
  EXPECT_EQ(json["idle_gpu_hours"], 2.5);
  EXPECT_TRUE(json["price"].is_null());
  EXPECT_THAT(to_text(diagnose(two_gpus()), 400, false), HasSubstr("Cost: 3 GPU hours, 2.5 of them idle.\n"));
  Policy policy;
  policy.gpu_hour_price = 4;
  EXPECT_THAT(to_text(diagnose(two_gpus(), policy), 400, false),
              HasSubstr("At 4 an hour: 12.0, 10.0 of it for idle time."));
}

TEST(Cost, IsUnknownWithoutGpuOrUtilisation) {
  EXPECT_FALSE(to_json(diagnose(healthy_cpu())).contains("cost"));
  Signals unseen = two_gpus();
  unseen.device_busy.reset();
  EXPECT_FALSE(to_json(diagnose(unseen)).contains("cost"));
}

TEST(Cost, OfALogIsThatOfTheGpusInIt) {
  Signals log;
  log.device_kind = "cuda";
  log.device_busy = 0.05;
  log.gpus = 8;
  log.time = {.other = 3 * 3600};
  EXPECT_EQ(to_json(diagnose(log))["cost"]["gpu_hours"], 24);
  EXPECT_NEAR(to_json(diagnose(log))["cost"]["idle_gpu_hours"].get<double>(), 24 * 0.95, 1e-6);
  log.command = {"python", "train.py"};  // of a record: the machine's other GPUs are not the run's
  EXPECT_EQ(to_json(diagnose(log))["cost"]["gpu_hours"], 3);
  log.timeline.emplace().alone = true;
  EXPECT_FALSE(to_json(diagnose(log)).contains("cost")) << "a window of a run";
}

TEST(Cost, OfAShortRunIsShownOnlyWithAPrice) {
  Signals signals = two_gpus();
  signals.time = {.startup = 10, .train = 20};
  EXPECT_THAT(to_text(diagnose(signals), 400, false), Not(HasSubstr("GPU hours")));
  Policy policy;
  policy.gpu_hour_price = 4;
  EXPECT_THAT(to_text(diagnose(signals, policy), 400, false), HasSubstr("GPU hours"));
}

TEST(ToText, AnswersFirst) {
  const std::string text = to_text(diagnose(waiting_cpu(0.62)), 400, false);
  const std::string first = text.substr(0, text.find('\n'));
  EXPECT_THAT(first, HasSubstr("Your training waits 62 % of each step for data that one thread makes"));
  EXPECT_THAT(first, HasSubstr("set loader.workers to 2"));
  EXPECT_THAT(first, HasSubstr(", at best 2.3x as fast"));
  EXPECT_THAT(text, HasSubstr("\nCPUs: 90 % busy while training (this command and its children).\n"));
  EXPECT_THAT(text, HasSubstr("loader.workers: 0 -> 2 (exact) at naive.yaml:6"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(ToText, OtherChecksAreCountedAndListedOnlyWhenAsked) {
  const Diagnosis diagnosis = diagnose(waiting_cpu(0.62));
  const std::string text = to_text(diagnosis, 400, false);
  EXPECT_THAT(text, ContainsRegex("\n[0-9]+ other checks found nothing, [0-9]+ lack a measurement "
                                  "\\(unidle diagnose -v lists them\\)\\.\n$"));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("Fine: ")), Not(HasSubstr("Not seen:"))));
  const std::string all = to_text(diagnosis, 400, false, Language::kEnglish, true);
  EXPECT_THAT(all, AllOf(HasSubstr("Fine: accumulation, "), HasSubstr("Not seen:\n"), HasSubstr("rules are about GPUs"),
                         Not(HasSubstr("other checks"))));
}

TEST(ToText, SaysHowToSeeWhatIsMissing) {
  Signals signals = healthy_gpu();
  EXPECT_THAT(to_text(diagnose(signals), 400, false), HasSubstr("unidle run --trace 10"));
  signals.device_busy.reset();
  EXPECT_THAT(to_text(diagnose(signals), 400, false), HasSubstr("NVML has to be found"));
  EXPECT_THAT(to_text(diagnose(waiting_cpu(0.62)), 400, false), Not(HasSubstr("--trace")));
  EXPECT_THAT(to_text(diagnose(Signals{}), 400, false), HasSubstr("record it with unidle run"));
}

TEST(ToText, AShortRunIsNotTheBoundOfALongOne) {
  Diagnosis diagnosis = diagnose(waiting_cpu(0.62));
  diagnosis.time = {.startup = 60, .train = 40};
  diagnosis.findings.front().speedup_bound = 1 / (1 - 0.3);
  EXPECT_THAT(answer(diagnosis), HasSubstr(", at best 4.0x as fast in training and 1.4x in this run"));
  diagnosis.findings.front().speedup_bound = 1 / (1 - 0.05);
  EXPECT_THAT(answer(diagnosis), HasSubstr(", at best 1.1x as fast"));
}

TEST(ToText, KeepsToTheWidthAndColoursOnlyWhenAsked) {
  const Diagnosis diagnosis = diagnose(waiting_and_ignored());
  std::istringstream lines(to_text(diagnosis, 60, false));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 60U) << line;
  }
  EXPECT_THAT(to_text(diagnosis, 60, true),
              HasSubstr(painted("Your training waits", "1").substr(0, painted("", "1").find('m'))));
}

TEST(ToText, AtMostFiveFindings) {
  Diagnosis diagnosis = diagnose(waiting_cpu(0.6));
  diagnosis.findings.resize(7, diagnosis.findings.front());
  const std::string text = to_text(diagnosis, 80, false);
  EXPECT_THAT(text, HasSubstr("\n5. "));
  EXPECT_THAT(text, Not(HasSubstr("\n6. ")));
  EXPECT_THAT(text, HasSubstr("2 more with unidle diagnose -v."));
  EXPECT_THAT(to_text(diagnosis, 80, false, Language::kEnglish, true), HasSubstr("\n7. "));
}

TEST(Answer, WorkersThatTakeCpusFromTheStep) {
  Diagnosis diagnosis = diagnose(healthy_cpu());
  Finding finding;
  finding.id = "loader-oversubscribed";
  finding.severity = Severity::kWarning;
  finding.fixes.push_back(knobs::change_of("loader.workers", 24, 1, "fewer"));
  diagnosis.findings = {finding};
  diagnosis.verdict = Verdict::kComputeBound;
  EXPECT_THAT(answer(diagnosis), AllOf(HasSubstr("loader workers take CPU time from it"),
                                       ::testing::EndsWith(": set loader.workers to 1.")));
  diagnosis.findings.front().id = "cpu-restricted";
  EXPECT_THAT(answer(diagnosis), Not(HasSubstr("loader workers"))) << "a step on few threads has no need of workers";
}

TEST(ToText, AFailureQuotesTheError) {
  Signals signals = healthy_cpu();
  signals.exit_code = 1;
  signals.output_tail = "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: bad crop\n";
  EXPECT_THAT(to_text(diagnose(signals), 200, false), ::testing::StartsWith("The run failed: ValueError: bad crop"));
}

TEST(Answer, AFailureIsQuotedWhateverTheExitCode) {
  Signals signals = healthy_cpu();
  signals.exit_code = 0;
  signals.output_tail = "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: bad crop\n";
  EXPECT_EQ(answer(diagnose(signals)), "The run failed: ValueError: bad crop.");
  signals.output_tail.clear();
  signals.exit_code = 3;
  EXPECT_EQ(answer(diagnose(signals)), "The run failed: the command ended with exit code 3.");
}

/// A run that a rule leads, without a change of a setting.
Diagnosis led_by(const std::string& rule) {
  Diagnosis diagnosis = diagnose(healthy_cpu());
  diagnosis.device.kind = "cuda";
  Finding finding;
  finding.id = rule;
  finding.severity = Severity::kCritical;
  finding.share = 0.55;
  finding.where = "train.py:7";
  diagnosis.findings = {finding};
  diagnosis.verdict = find_rule(rule)->verdict;
  return diagnosis;
}

TEST(Answer, SaysWhatToDoAndWhereWithoutAChangeOfASetting) {
  EXPECT_EQ(answer(led_by("queued-work-waits")),
            "Your GPU idles 55 % of the time although work is queued: look at what the streams wait for at the longest "
            "gaps (unidle trace FILE, Perfetto); see train.py:7.");
  EXPECT_THAT(answer(led_by("python-between-steps")), Not(HasSubstr("see train.py"))) << "it is named already";
  for (const Rule* rule : all_rules()) {
    EXPECT_THAT(answer(led_by(rule->id)), HasSubstr(rule->proposes)) << rule->id;
  }
}

TEST(ToText, AQuotedErrorHasNoColoursAndOneFullStop) {
  Signals signals = healthy_cpu();
  signals.exit_code = 1;
  signals.output_tail =
      "\x1b[31mTraceback (most recent call last):\x1b[0m\n  File \"a.py\", line 1\n"
      "ValueError: \x1b[1mdo those steps\x1b[0m. \n";
  EXPECT_THAT(to_text(diagnose(signals), 200, false),
              ::testing::StartsWith("The run failed: ValueError: do those steps.\n"));
  signals.output_tail.clear();
  signals.exception = "ValueError: what now?";
  EXPECT_THAT(to_text(diagnose(signals), 200, false), ::testing::StartsWith("The run failed: ValueError: what now?\n"));
}

TEST(ToText, HealthyAndUnknownSaySo) {
  EXPECT_THAT(to_text(diagnose(healthy_cpu()), 80, false), ::testing::StartsWith("Nothing holds this run up"));
  EXPECT_THAT(to_text(diagnose(Signals{}), 80, false), ::testing::StartsWith("No training step was seen"));
}

TEST(ToText, SaysWhereARunOnCpusComputes) {
  Signals signals = waiting_cpu(0.1);
  signals.hot = {{"train", "train", "net.py:5", "Teacher.forward", 60, 100},
                 {"train", "train", "net.py:7", "Teacher.forward", 15, 90},
                 {"train", "train", "train.py:9", "train", 24, 100},
                 {"train", "between", "train.py:12", "train", 90, 90},
                 {"worker", "train", "data.py:3", "read", 90, 90}};
  const auto text = [&] { return to_text(diagnose(signals), 200, false); };
  EXPECT_THAT(text(), HasSubstr("Compute, by stack samples: 75 % in Teacher.forward (net.py:5).\n"))
      << "24 % is little";
  signals.hot[2].hits = 25;
  EXPECT_THAT(text(), HasSubstr("75 % in Teacher.forward (net.py:5), 25 % in train (train.py:9).\n"));
  signals.device_kind = "cuda";
  EXPECT_THAT(text(), Not(HasSubstr("Compute, by"))) << "a line asks for work that the device does later";
  signals.device_kind = "cpu";
  signals.hot = {{"train", "train", "net.py:5", "Teacher.forward", 19, 19}};
  EXPECT_THAT(text(), Not(HasSubstr("Compute, by"))) << "a second shows nothing";
}

TEST(Answer, AFewStepsSayNothing) {
  Signals signals = healthy_cpu();
  signals.step_lengths_seen = true;
  signals.steps = 2;
  EXPECT_THAT(answer(diagnose(signals)), StartsWith("The run finished fewer than 5 training steps, too few"));
}

TEST(Answer, AFewLongStepsSayEnough) {
  Signals signals = healthy_cpu();
  signals.step_lengths_seen = true;
  signals.steps = 3;
  signals.step_s = 0.5;
  EXPECT_THAT(answer(diagnose(signals)), StartsWith("The run finished fewer than 5 training steps, too few"));
  signals.step_s = 8;
  EXPECT_THAT(answer(diagnose(signals)), StartsWith("Nothing holds this run up"));
  signals.steps = 2;
  EXPECT_THAT(answer(diagnose(signals)), StartsWith("The run finished fewer than 5 training steps, too few"));
}

TEST(Answer, AHealthyRunThatMostlyStartsSaysSo) {
  Signals signals = healthy_cpu();
  EXPECT_THAT(answer(diagnose(signals)), Not(HasSubstr("first training step")));
  signals.time.startup += signals.wall_s;
  signals.wall_s *= 2;
  EXPECT_THAT(answer(diagnose(signals)),
              AllOf(StartsWith("Nothing holds the training up"),
                    ::testing::EndsWith(" of its time before its first training step is finished.")));
}

TEST(Answer, AHealthyRunNamesTheSettingsThatMayStillGain) {
  Signals signals = healthy_cpu();
  EXPECT_THAT(answer(diagnose(signals)), Not(HasSubstr("Perhaps faster")));
  signals.model_has_convolutions = true;
  signals.model_has_depthwise = false;
  signals.settings["layout.channels_last"] = {"", "", "false"};
  signals.cpu_bf16 = true;
  signals.settings["precision.amp"] = {"", "", "off"};
  EXPECT_THAT(
      answer(diagnose(signals)),
      AllOf(StartsWith("Nothing holds this run up"),
            ::testing::EndsWith(
                "trains. Perhaps faster with layout.channels_last=true, precision.amp=bf16: unidle fix measures "
                "it.")));
}

TEST(Answer, AHealthyRunWithOneLongValidationSaysSo) {
  Signals signals = healthy_cpu();
  signals.validations = 1;
  signals.time.validate = signals.time.train;
  signals.wall_s += signals.time.validate;
  EXPECT_THAT(answer(diagnose(signals)),
              AllOf(StartsWith("Nothing holds the training up"), ::testing::EndsWith(" of its time on validation.")));
}

TEST(Diagnosis, ArithmeticIsRatedByTheRunsOwnSteps) {
  Signals signals;
  signals.steps_per_s = 10;
  signals.flops_per_step = 3e12;
  EXPECT_FALSE(diagnose(signals).arithmetic->utilisation);
  signals.peak_s_per_step = 0.04;
  const Diagnosis found = diagnose(signals);
  EXPECT_DOUBLE_EQ(found.arithmetic->flops_per_s, 3e13);
  EXPECT_DOUBLE_EQ(*found.arithmetic->utilisation, 0.4);
  EXPECT_EQ(to_json(found)["arithmetic"]["mfu"], 0.4);
  EXPECT_THAT(to_text(found, 100, false),
              HasSubstr("Compute: 3 TFLOP per step, 30.0 TFLOP/s, 40 % of the data-sheet peak (MFU)."));
  signals.peak_s_per_step = 0.11;
  EXPECT_FALSE(diagnose(signals).arithmetic->utilisation) << "nothing exceeds its peak";
  signals.steps_per_s.reset();
  EXPECT_FALSE(diagnose(signals).arithmetic);
}

}  // namespace
}  // namespace unidle::diagnose::testing
