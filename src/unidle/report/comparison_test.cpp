#include "unidle/report/comparison.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>

#include "unidle/base/terminal.h"
#include "unidle/report/testing/scripted_run.h"
#include "unidle/tune/output/result.h"

namespace unidle::report {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using testing::naive_script;
using testing::Script;
using testing::scripted_run;
using ::testing::SizeIs;
using testing::tuned_script;

Script quiet(double compute_ms) {
  Script script;
  script.compute_ms = compute_ms;
  script.seed = static_cast<std::uint64_t>(compute_ms * 10);
  return script;
}

TEST(Comparison, FindsTheSpeedUpWithItsInterval) {
  const Comparison c = compare(scripted_run(naive_script()), scripted_run(tuned_script()));
  ASSERT_TRUE(c.training_ratio && c.training_ratio->interval);
  // By the scripts: 150 ms per step against 36.7.
  EXPECT_NEAR(c.training_ratio->value, 150 / 36.7, 0.25);
  EXPECT_LT(c.training_ratio->interval->low, c.training_ratio->value);
  EXPECT_GT(c.training_ratio->interval->high, c.training_ratio->value);
  EXPECT_EQ(c.training, experiment::SpeedChange::kFaster);
  EXPECT_THAT(c.regressions, IsEmpty());
  EXPECT_THAT(headline(c), HasSubstr("as fast as A"));
}

TEST(Comparison, AWorseRunIsARegression) {
  const Comparison c = compare(scripted_run(tuned_script()), scripted_run(naive_script()));
  EXPECT_EQ(c.training, experiment::SpeedChange::kRegression);
  EXPECT_THAT(c.regressions, Contains(HasSubstr("Training throughput")));
  EXPECT_TRUE(to_json(c)["regression"].get<bool>());
}

TEST(Comparison, TheSameRunShowsNoDifference) {
  const RunData run = scripted_run(naive_script());
  const Comparison c = compare(run, run);
  EXPECT_EQ(c.training, experiment::SpeedChange::kNoDifference);
  EXPECT_EQ(c.total, experiment::SpeedChange::kNoDifference);
  EXPECT_LT(c.training_ratio->interval->low, 1) << "its rate has noise, also beside itself";
  EXPECT_GT(c.training_ratio->interval->high, 1);
  EXPECT_FALSE(c.regression());
  EXPECT_THAT(headline(c), HasSubstr("Same speed"));
  EXPECT_THAT(c.settings, IsEmpty());
}

TEST(Comparison, OfDifferentProgramsThereIsNoRegression) {
  const auto run_of = [](const char* script, const char* model, const Script& times) {
    RunData run = scripted_run(times);
    run.meta["command"] = {"python", script};
    run.notes.push_back({1, 1, {{"type", "model"}, {"class", model}, {"parameters", 1000}}});
    return run;
  };
  const RunData fast = run_of("train.py", "Net", tuned_script());
  const Comparison other = compare(fast, run_of("gan.py", "Generator", naive_script()));
  EXPECT_FALSE(other.regression());
  EXPECT_THAT(headline(other), HasSubstr("different programs"));
  RunData failed = run_of("gan.py", "Generator", naive_script());
  failed.meta["outcome"] = "failed";
  EXPECT_TRUE(compare(fast, failed).regression()) << "a failure is one all the same";
  EXPECT_TRUE(compare(fast, run_of("slow.py", "Net", naive_script())).regression()) << "the same model";
  EXPECT_TRUE(compare(fast, run_of("train.py", "Larger", naive_script())).regression()) << "the same script";
}

TEST(Comparison, AWideIntervalIsNotTheSameSpeed) {
  Comparison c = compare(scripted_run(naive_script()), scripted_run(naive_script()));
  c.training_ratio->interval = {0.8, 1.3};
  EXPECT_THAT(headline(c), HasSubstr("No difference shown"));
}

TEST(Comparison, StepsThatDoNotVaryAtAllStillCompare) {
  Script script;
  script.noise = 0;
  const RunData run = scripted_run(script);
  EXPECT_EQ(compare(run, run).training, experiment::SpeedChange::kNoDifference);
}

TEST(Comparison, SlowerWithinTheToleranceIsSaidButIsNoRegression) {
  const RunData a = scripted_run(quiet(50));
  const RunData b = scripted_run(quiet(53));  // 69 ms per step against 72
  EXPECT_EQ(compare(a, b, 0.10).training, experiment::SpeedChange::kSlower);
  EXPECT_FALSE(compare(a, b, 0.10).regression());
  EXPECT_EQ(compare(a, b, 0.01).training, experiment::SpeedChange::kRegression);
}

TEST(Comparison, SlowerValidationIsAnEndToEndRegression) {
  Script slow = quiet(50);
  slow.validate_s = 6;
  const Comparison c = compare(scripted_run(quiet(50)), scripted_run(slow));
  EXPECT_EQ(c.training, experiment::SpeedChange::kNoDifference);
  EXPECT_EQ(c.total, experiment::SpeedChange::kRegression);
  EXPECT_THAT(c.regressions, Contains(HasSubstr("End-to-end")));
  EXPECT_THAT(headline(c), HasSubstr("B is slower from end to end: 0.5"));
}

TEST(Comparison, RarerValidationIsFasterFromEndToEndThoughTheStepsAreSlower) {
  Script often = quiet(50);
  often.validate_s = 6;
  const Comparison c = compare(scripted_run(often), scripted_run(quiet(60)));
  EXPECT_TRUE(c.training == experiment::SpeedChange::kRegression && c.total == experiment::SpeedChange::kFaster);
  EXPECT_THAT(c.regressions, IsEmpty());
  EXPECT_THAT(headline(c), MatchesRegex("B is 1\\.[0-9]+x as fast as A from end to end \\(95 % interval .*\\); its "
                                        "training steps alone run at 0\\.[0-9]+x the rate\\."));
}

TEST(Comparison, TheIntervalCoversAsOftenAsItSays) {
  // Neighbouring steps are correlated (first-order autoregressive), which a bootstrap of single steps would miss.
  int covered = 0;
  constexpr int kRuns = 150;
  std::mt19937_64 random(3);
  std::normal_distribution<double> unit;
  const auto run = [&] {
    RunData out;
    std::int64_t now = 0;
    double drift = 0;
    for (int i = 0; i < 300; ++i) {
      drift = 0.6 * drift + unit(random);
      record::Step step;
      step.t_ns = now;
      step.samples = 8;
      step.duration_ns = static_cast<std::int64_t>((50 + 4 * drift) * 1e6);
      now += step.duration_ns;
      out.steps.push_back(step);
    }
    account::tidy(out);
    return out;
  };
  for (int i = 0; i < kRuns; ++i) {
    const RunData a = run();
    const RunData b = run();
    covered += compare(a, b).training == experiment::SpeedChange::kNoDifference ? 1 : 0;
  }
  EXPECT_GE(covered, kRuns * 87 / 100);
  EXPECT_LE(covered, kRuns);
}

TEST(Comparison, StepsThatAProfilerSlowsDoNotCount) {
  const RunData plain = scripted_run(quiet(50));
  RunData traced = plain;
  const std::size_t half = traced.steps.size() / 2;
  traced.notes.push_back({0,
                          traced.steps.front().process,
                          {{"type", "trace"}, {"status", "recorded"}, {"attached_ns", traced.steps[half].t_ns}}});
  for (std::size_t i = half; i < traced.steps.size(); ++i) {
    traced.steps[i].samples /= 2;  // half as fast
  }
  const Comparison c = compare(plain, traced);
  EXPECT_NEAR(c.training_ratio->value, 1, 0.05);
  EXPECT_LT(c.b.throughput.steps, half);
  EXPECT_THAT(c.notes, Contains(HasSubstr("rates of B are of the")));
  EXPECT_THAT(c.notes, ::testing::Not(Contains(HasSubstr("rates of A are of the"))));
}

Script beside(double others, double own) {
  Script script = quiet(50);
  script.cores = own;
  script.others_cores = others;
  return script;
}

TEST(Comparison, RatesAreRoughWhereOthersUsedTheMachine) {
  const RunData alone = scripted_run(beside(0.05, 1));
  const RunData crowded = scripted_run(beside(1.2, 1));
  const Comparison c = compare(alone, crowded);
  EXPECT_FALSE(c.a.rough);
  EXPECT_TRUE(c.b.rough);
  EXPECT_NEAR(*c.b.others_cpus, 1.2, 0.01);
  EXPECT_THAT(c.notes, Contains(HasSubstr("rates of B are rough: other processes used 1.2 CPUs")));
  EXPECT_THAT(c.notes, ::testing::Not(Contains(HasSubstr("rates of A"))));
  EXPECT_THAT(to_text(c, 80, false), HasSubstr("CPUs used by others"));
  const nlohmann::json json = to_json(c);
  EXPECT_EQ(json["a"]["rough"], false);
  EXPECT_EQ(json["b"]["rough"], true);
  EXPECT_NEAR(json["b"]["others_cpus"].get<double>(), 1.2, 0.01);
}

TEST(Comparison, WhatOthersMayHaveDoneIsNotProven) {
  Script slow = beside(0.5, 1);
  slow.compute_ms = 80;  // 99 ms per step instead of 69
  const Comparison c = compare(scripted_run(beside(0.05, 1)), scripted_run(slow));
  EXPECT_EQ(c.training, experiment::SpeedChange::kRegression);
  EXPECT_THAT(c.regressions, IsEmpty());
  EXPECT_THAT(headline(c), MatchesRegex("B ran at 0\\.[67][0-9]x the rate of A, which proves nothing: other "
                                        "processes used the CPUs meanwhile\\."));
  Script alone = beside(0.05, 1);
  alone.compute_ms = 80;
  EXPECT_TRUE(compare(scripted_run(beside(0.5, 1)), scripted_run(alone)).regression()) << "others beside the faster";
  slow.compute_ms = 300;
  EXPECT_TRUE(compare(scripted_run(beside(0.05, 1)), scripted_run(slow)).regression()) << "more than they can do";
}

TEST(Comparison, TheEnergyIsThatOfAllDevices) {
  RunData run = scripted_run(quiet(50));
  EXPECT_FALSE(summarise(run).energy_per_sample_j) << "not recorded";
  const auto draws = [&](const char* device, double watts) {
    std::vector<record::Point> points;
    for (const record::Step& step : run.steps) {
      points.push_back({step.t_ns, watts});
    }
    run.series.push_back({{std::string(record::series::kGpuPower), "W", device}, points});
  };
  draws("gpu0", 300);
  const double of_one = summarise(run).energy_per_sample_j.value();
  draws("gpu1", 100);
  EXPECT_DOUBLE_EQ(summarise(run).energy_per_sample_j.value(), of_one * 4 / 3);
}

TEST(Comparison, WhatTheSystemAlwaysDoesIsNoDisturbance) {
  EXPECT_FALSE(summarise(scripted_run(beside(0.2, 0.5))).rough) << "less than a quarter of a CPU";
  EXPECT_FALSE(summarise(scripted_run(beside(0.5, 7))).rough) << "less than a tenth of what the run uses";
  EXPECT_FALSE(summarise(scripted_run(quiet(50))).others_cpus) << "not recorded";
}

TEST(Comparison, OnlyConfiguredValuesAreConfigured) {
  RunData a = scripted_run(Script{});
  RunData b = a;
  a.settings = {{"batch.size", "8", "configured", "t.py:1"}};
  b.settings = {{"batch.size", "8", "configured", "t.py:1"}, {"batch.size", "16", "environment", "BATCH_SIZE"}};
  EXPECT_THAT(compare(a, b).settings, IsEmpty());
}

TEST(Comparison, TooFewStepsAreSaidToBeTooFew) {
  Script script;
  script.steps = 5;
  const RunData run = scripted_run(script);
  const Comparison c = compare(run, run);
  EXPECT_EQ(c.training, experiment::SpeedChange::kUnknown);
  EXPECT_THAT(headline(c), HasSubstr("too few steps"));
  EXPECT_THAT(c.notes, Contains(HasSubstr("too few to tell")));
}

TEST(Comparison, RunsWithoutStepsCompareWithoutThroughput) {
  RunData empty;
  account::tidy(empty);
  const Comparison c = compare(empty, scripted_run(naive_script()));
  EXPECT_FALSE(c.training_ratio);
  EXPECT_FALSE(c.regression());
  EXPECT_THAT(c.notes, Contains(HasSubstr("A has no training steps")));
  EXPECT_THAT(to_text(c, 80, false), HasSubstr("cannot be compared"));
}

TEST(Comparison, ListsSettingsThatDifferAndNoOthers) {
  RunData a = scripted_run(Script{});
  RunData b = a;
  a.settings = {{"loader.workers", "0", "effective", ""}, {"optimizer.fused", "True", "effective", ""}};
  b.settings = {{"loader.workers", "4", "effective", ""},
                {"optimizer.fused", "true", "effective", ""},
                {"precision.amp", "bf16", "configured", "t.yaml:3"}};
  const Comparison c = compare(a, b);
  ASSERT_THAT(c.settings, SizeIs(2));
  EXPECT_EQ(c.settings[0].knob, "loader.workers");
  EXPECT_EQ(c.settings[1].knob, "precision.amp");
  EXPECT_FALSE(c.settings[1].configured_a);
}

TEST(Comparison, VariablesAloneAreNoSettings) {
  RunData a = scripted_run(Script{});
  RunData b = a;
  a.settings = {{"device", "0", "environment", "CUDA_VISIBLE_DEVICES"}};
  b.settings = {{"loader.workers", "4", "effective", ""}};
  const Comparison c = compare(a, b);
  EXPECT_THAT(c.settings, IsEmpty());
  EXPECT_THAT(c.notes, Contains(HasSubstr("A recorded no settings")));
}

TEST(Comparison, HigherLossIsARegressionAndNoiseIsNot) {
  const RunData a = scripted_run(quiet(50));
  Script other = quiet(50);
  other.seed = 99;
  EXPECT_EQ(compare(a, scripted_run(other)).learning.measures.front().verdict, experiment::Verdict::kEqual);
  other.loss_factor = 1.15;
  const Comparison c = compare(a, scripted_run(other));
  EXPECT_EQ(c.learning.measures.front().verdict, experiment::Verdict::kWorse);
  EXPECT_THAT(c.regressions, Contains(HasSubstr("loss at")));
}

TEST(Comparison, ALowerLossIsNoGainWhereTheArithmeticIsTheSame) {
  RunData a = scripted_run(quiet(50));
  Script lower = quiet(50);
  lower.loss_factor = 0.8;
  RunData b = scripted_run(lower);
  EXPECT_FALSE(compare(a, b).regression()) << "nobody knows what changed";
  a.settings = {{"loader.workers", "0", "effective", ""}};
  b.settings = {{"loader.workers", "4", "effective", ""}};
  const Comparison c = compare(a, b);
  EXPECT_EQ(c.learning.measures.front().verdict, experiment::Verdict::kBetter);
  EXPECT_THAT(c.regressions, Contains(HasSubstr("the samples differ")));
}

TEST(Comparison, LossIsComparedAtEqualSamplesWhateverTheBatch) {
  // Twice the batch, half the steps: the curves agree over samples, not over steps.
  Script large = quiet(50);
  large.batch = 8;
  large.steps = 100;
  const Comparison c = compare(scripted_run(quiet(50)), scripted_run(large));
  EXPECT_EQ(c.learning.measures.front().verdict, experiment::Verdict::kEqual);
  EXPECT_THAT(c.notes, Contains(HasSubstr("Steps differ in size")));
}

TEST(Comparison, ALossThatIsReadRarelyIsStillCompared) {
  const RunData a = scripted_run(quiet(50));
  const auto every_tenth = [](RunData run) {
    for (std::size_t i = 0; i < run.steps.size(); ++i) {
      if (i % 10 != 9) {
        run.steps[i].loss.reset();
      }
    }
    return run;
  };
  Script other = quiet(50);
  other.seed = 99;
  EXPECT_EQ(compare(a, every_tenth(scripted_run(other))).learning.measures.front().verdict,
            experiment::Verdict::kEqual);
  other.loss_factor = 1.3;
  EXPECT_EQ(compare(a, every_tenth(scripted_run(other))).learning.measures.front().verdict,
            experiment::Verdict::kWorse);
  EXPECT_EQ(compare(every_tenth(scripted_run(other)), a).learning.measures.front().verdict,
            experiment::Verdict::kBetter);
}

TEST(Comparison, LossesTooNoisyToTellAreNotCalledEqual) {
  RunData a = scripted_run(quiet(50));
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    a.steps[i].loss = i % 3 == 0 ? 1.0 : 0.1;
  }
  RunData b = a;
  for (std::size_t i = 0; i + 1 < b.steps.size(); ++i) {
    b.steps[i].loss.reset();
  }
  EXPECT_EQ(compare(a, b).learning.measures.front().verdict, experiment::Verdict::kNotComparable);
}

TEST(Comparison, AFewLossesAreJudgedByTheirOwnNoise) {
  const auto with_losses = [](const std::vector<double>& losses) {
    RunData run = scripted_run(quiet(50));
    run.steps.resize(losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      run.steps[i].loss = losses[i];
    }
    return run;
  };
  const RunData steady = with_losses({20.0, 18.0, 16.0, 14.0, 12.0});
  EXPECT_EQ(compare(steady, with_losses({20.0, 18.0, 16.3, 14.7, 13.2})).learning.measures.front().verdict,
            experiment::Verdict::kWorse);
  std::vector<double> bent(16);
  std::vector<double> ends_higher(16);
  for (std::size_t i = 0; i < bent.size(); ++i) {
    const double falling = std::exp(-0.5 * static_cast<double>(i));
    bent[i] = 2 + 8 * falling;
    ends_higher[i] = 2.3 + 7.7 * falling;
  }
  EXPECT_EQ(compare(with_losses(bent), with_losses(ends_higher)).learning.measures.front().verdict,
            experiment::Verdict::kWorse);
  const RunData noisy = with_losses({20.0, 16.0, 17.5, 13.0, 12.0});
  EXPECT_NE(compare(noisy, with_losses({20.0, 18.0, 15.5, 15.0, 13.2})).learning.measures.front().verdict,
            experiment::Verdict::kWorse);
}

TEST(Comparison, ALossThatIsNotANumberIsARegression) {
  const RunData a = scripted_run(quiet(50));
  RunData b = a;
  b.steps[150].loss = std::numeric_limits<double>::quiet_NaN();
  const Comparison c = compare(a, b);
  EXPECT_THAT(c.regressions, Contains(HasSubstr("stopped being a finite number")));
  EXPECT_EQ(to_json(c).dump().find("nan"), std::string::npos);
}

TEST(Comparison, PsnrMayFallByATenthOfADecibel) {
  RunData a = scripted_run(Script{});
  RunData b = a;
  a.metrics["psnr"] = {{"psnr", 1, 1, 400, 25.0}, {"psnr", 2, 2, 800, 27.0}};
  b.metrics["psnr"] = {{"psnr", 1, 1, 400, 25.0}, {"psnr", 2, 2, 800, 26.95}};
  EXPECT_FALSE(compare(a, b).regression());
  b.metrics["psnr"][1].value = 26.85;
  EXPECT_TRUE(compare(a, b).regression());
  // Only the common range counts: B is measured at 400 samples only, where both are equal.
  b.metrics["psnr"].pop_back();
  const Comparison c = compare(a, b);
  EXPECT_FALSE(c.regression());
  EXPECT_DOUBLE_EQ(c.learning.measures.at(1).samples, 400);
}

TEST(Comparison, AFailedRunIsARegression) {
  const RunData a = scripted_run(Script{});
  RunData b = a;
  b.meta["outcome"] = "failed";
  EXPECT_THAT(compare(a, b).regressions, Contains(HasSubstr("failed")));
  EXPECT_THAT(compare(b, b).regressions, IsEmpty());
}

TEST(Comparison, ShowsWhatAnOptimisingRunChanged) {
  RunData a = scripted_run(Script{});
  RunData b = a;
  b.meta["changes"] = nlohmann::json::parse(
      R"([{"knob": "loader.workers", "from": "0", "to": "4", "reason": "input wait is 61 %", "gain": 2.4}])");
  tune::LoggedTrial trial;
  trial.index = 2;
  trial.changes = {{"loader.workers", 4}};
  trial.why = "loader.workers=4; 2.400x of the best so far";
  trial.result.ok = true;
  trial.result.rate = 71.25;
  b.meta["trials"] = nlohmann::json::array({tune::to_json(trial)});
  const std::string text = to_text(compare(a, b), 80, false);
  EXPECT_THAT(text, HasSubstr("loader.workers: 0 -> 4 (gain 2.40x)"));
  EXPECT_THAT(text, HasSubstr("input wait is 61 %"));
  EXPECT_THAT(text, HasSubstr("71.2"));
  EXPECT_THAT(text, HasSubstr("loader.workers=4; 2.400x"));
  b.meta["trials"].push_back({{"trial", 3}});
  EXPECT_THAT(to_text(compare(a, b), 80, false), HasSubstr("entries of another form in the record, left out: 1"));
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  std::size_t length = 0;
  for (const char c : text) {
    length = c == '\n' ? 0 : length + ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0);
    widest = std::max(widest, length);
  }
  return widest;
}

TEST(Comparison, TextFitsTheTerminal) {
  RunData a = scripted_run(naive_script());
  a.name = std::string(300, 'n');
  a.settings.push_back({"data.path", std::string(200, 'p'), "configured", "x.yaml:1"});
  const Comparison c = compare(a, scripted_run(tuned_script()));
  for (const int width : {40, 60, 80, 120}) {
    EXPECT_LE(widest_line(to_text(c, width, false)), static_cast<std::size_t>(width)) << to_text(c, width, false);
  }
}

TEST(Comparison, ColoursOnlyWhenAsked) {
  RunData a = scripted_run(naive_script());
  a.name = "evil\x1b[31m";
  const Comparison c = compare(a, scripted_run(tuned_script()));
  EXPECT_EQ(to_text(c, 80, false).find('\x1b'), std::string::npos);
  const std::string mark = painted("", "1");
  EXPECT_NE(to_text(c, 80, true).find(mark.substr(0, mark.find(':'))), std::string::npos);
}

}  // namespace
}  // namespace unidle::report
