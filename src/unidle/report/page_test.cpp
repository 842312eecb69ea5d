#include "unidle/report/page.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/report/comparison.h"
#include "unidle/report/page/activity.h"
#include "unidle/report/page/html.h"
#include "unidle/report/testing/scripted_run.h"
#include "unidle/tune/output/result.h"

namespace unidle::report {
namespace {

using testing::gpu_script;
using ::testing::HasSubstr;
using testing::naive_script;
using ::testing::Not;
using testing::Script;
using testing::scripted_run;
using testing::tuned_script;

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

/// The first "nan" or "inf" in place of a number, with the text before it; "" when there is none.
std::string bad_number(const std::string& html) {
  constexpr std::string_view kBefore = "\" >MLhv-";
  constexpr std::string_view kAfter = "\" ,LMx<z";
  for (const char* word : {"nan", "inf"}) {
    for (std::size_t at = html.find(word); at != std::string::npos; at = html.find(word, at + 1)) {
      if (at > 0 && at + 3 < html.size() && kBefore.find(html[at - 1]) != std::string_view::npos &&
          kAfter.find(html[at + 3]) != std::string_view::npos) {
        return html.substr(at - std::min<std::size_t>(at, 200), 203);
      }
    }
  }
  return {};
}

/// Properties of every page: numbers in pictures are numbers, nothing is fetched, tags are closed.
void expect_sound(const std::string& html) {
  EXPECT_EQ(bad_number(html), "");
  EXPECT_EQ(count(html, "http://") + count(html, "https://"), 0U);
  EXPECT_EQ(count(html, "<script"), 1U);  // the page's own
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  for (const char* tag :
       {"svg", "table", "section", "figure", "div", "article", "ul", "ol", "li", "span", "p", "pre"}) {
    EXPECT_EQ(count(html, std::string("<") + tag + ">") + count(html, std::string("<") + tag + " "),
              count(html, std::string("</") + tag + ">"))
        << tag;
  }
}

diagnose::Diagnosis diagnosis() {
  diagnose::Diagnosis d;
  d.verdict = diagnose::Verdict::kInputBound;
  d.outcome = diagnose::Outcome::kCompleted;
  diagnose::Finding finding;
  finding.id = "loader-no-workers";
  finding.severity = diagnose::Severity::kCritical;
  finding.share = 0.44;
  finding.speedup_bound = 1.79;
  finding.evidence = {"input wait is 97.1 ms of each 155 ms step"};
  finding.where = "naive.yaml:14";
  finding.fixes = {{"loader.workers", 0, 4, knobs::KnobClass::kExact, "prepare batches in workers"}};
  d.findings = {finding};
  d.abstained = {{"throttled", "gpu.clocks"}};
  return d;
}

TEST(Page, OneRunShowsItsPlotsFindingsAndSettings) {
  const std::string html = page({{scripted_run(gpu_script()), diagnosis()}});
  expect_sound(html);
  for (const char* text :
       {"keypoint-h100", "input wait", "Training loss", "GPU power", "GPU memory in use", "loader-no-workers",
        "44\u00a0% of wall time", "loader.workers: 4", "not in effect", "AMD EPYC", "gpu.clocks", "Throughput"}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
  EXPECT_THAT(html, HasSubstr("The loader runs in the training process"));  // the rule's title
  EXPECT_EQ(count(html, "<title id="), count(html, "<svg "));
  EXPECT_EQ(count(html, "<desc id="), count(html, "<svg "));
}

TEST(Page, TheFirstScreenNamesTheChangeAndItsLimit) {
  const std::string html = page({{scripted_run(naive_script()), diagnosis()}});
  const std::string first = html.substr(html.find("<header>"), html.find("</header>") - html.find("<header>"));
  for (const char* text : {"<h1>Your", "+ loader.workers: 4", "naive.yaml:14", "(1.79x)", "at best"}) {
    EXPECT_THAT(first, HasSubstr(text));
  }
}

TEST(Page, TheCommandSaysWhatWasApplied) {
  account::RunData run = scripted_run(naive_script());
  run.meta[record::meta::kCommand] = {"python", "train.py"};
  EXPECT_THAT(page({{run, {}}}), HasSubstr("<code>python train.py</code>"));
  run.meta[record::meta::kRunOptions] = {{"apply", {{"loader.workers", "2"}}}};
  EXPECT_THAT(page({{run, {}}}), HasSubstr("<code>unidle run --apply loader.workers=2 -- python train.py</code>"));
}

TEST(Page, RanksAndDevicesHaveLanesWhenThereAreSeveral) {
  account::RunData run = scripted_run(gpu_script());
  EXPECT_THAT(page({{run, {}}}), Not(HasSubstr("rank0-title")));
  const std::size_t steps = run.steps.size();
  for (std::size_t i = 0; i < steps; ++i) {
    record::Step step = run.steps[i];
    step.process += 1;
    run.steps.push_back(step);
  }
  run.series.push_back(
      {{"gpu.utilisation", "1", "gpu1"}, {{run.steps.front().t_ns, 0.5}, {run.steps.back().t_ns, 0.6}}});
  account::tidy(run);
  const std::string html = page({{run, {}}});
  expect_sound(html);
  for (const char* lane : {"rank0-title", "rank1-title", "lanegpu0-title", "lanegpu1-title"}) {
    EXPECT_EQ(count(html, std::string("id=\"") + lane + "\""), 1U) << lane;
  }
}

TEST(Page, ALongRunIsASmallPage) {
  Script script = naive_script();
  script.steps = 100'000;
  script.validate_every = 500;
  const std::string html = page({{scripted_run(script), diagnosis()}});
  expect_sound(html);
  EXPECT_LT(html.size(), 2'000'000U);
}

TEST(Page, SaysThatRatesAreRough) {
  Script script = naive_script();
  script.others_cores = 2;
  EXPECT_THAT(page({{scripted_run(script), diagnosis()}}), HasSubstr("other processes used 2"));
  script.others_cores = 0.01;
  EXPECT_THAT(page({{scripted_run(script), diagnosis()}}), Not(HasSubstr("other processes used")));
}

TEST(Page, TheSameRecordGivesTheSameBytes) {
  const std::vector<Entry> entries = {{scripted_run(naive_script()), diagnosis()}};
  EXPECT_EQ(page(entries), page(entries));
}

TEST(Page, TwoRunsAreComparedFirst) {
  const std::string html = page({{scripted_run(naive_script()), {}}, {scripted_run(tuned_script()), {}}});
  expect_sound(html);
  EXPECT_THAT(html, HasSubstr("superres-tuned trains"));
  EXPECT_LT(html.find("The run over time"), html.find("Before and after"));  // pictures first
  EXPECT_THAT(html, HasSubstr("line run0"));
  EXPECT_THAT(html, HasSubstr("line run1"));
}

TEST(Page, TwoRunsNamedByTheirTimeAreBeforeAndAfter) {
  account::RunData before = scripted_run(naive_script());
  account::RunData after = scripted_run(tuned_script());
  before.name = "20261130-004855-train";
  after.name = "20261130-005403-train";
  const std::string html = page({{before, {}}, {after, {}}});
  expect_sound(html);
  EXPECT_THAT(html, HasSubstr("<h1>The &quot;after&quot; run trains "));
  EXPECT_THAT(html, HasSubstr("before: 20261130-004855-train \u00b7 after: 20261130-005403-train"));
  EXPECT_EQ(count(html, "20261130-004855"), 2U) << "in the title and at the top, nowhere else";
  before.name = "naive";
  EXPECT_THAT(page({{before, {}}, {after, {}}}), HasSubstr("<h1>20261130-005403-train trains"));
}

TEST(Page, TheHeadlineIsWhatIsWrongAndTheChangeStandsBelow) {
  const account::RunData run = scripted_run(naive_script());
  const diagnose::Diagnosis d = diagnosis();
  const std::string html = page({{run, d}});
  EXPECT_THAT(html, HasSubstr("<h1>" + prose(diagnose::problem(d)).markup + "</h1>"));
  EXPECT_LT(diagnose::problem(d).size(), diagnose::answer(d).size());
  diagnose::Diagnosis beside_others = d;
  beside_others.taken = diagnose::TakenCpus{0.8, 1.2, 2, {}};
  const std::string cautious = page({{run, beside_others}});
  EXPECT_THAT(cautious, HasSubstr("<h1>" + prose(diagnose::problem(d)).markup + "</h1>"));
  EXPECT_THAT(cautious, HasSubstr("<p class=\"caution\">Other processes took 0.8 of the 2 CPUs"));
}

TEST(Page, ARunThatOnlyOptimisedIsShownButNotCompared) {
  account::RunData optimise;
  optimise.name = "optimise";
  optimise.meta["changes"] =
      nlohmann::json::parse(R"([{"knob": "loader.workers", "from": "0", "to": "4", "reason": "", "gain": null}])");
  account::tidy(optimise);
  const std::string html =
      page({{scripted_run(naive_script()), {}}, {scripted_run(tuned_script()), {}}, {optimise, {}}});
  expect_sound(html);
  EXPECT_THAT(html, HasSubstr("+ loader.workers: 4"));
  EXPECT_EQ(count(html, "Before and after"), 1U);
}

TEST(Page, ASearchAloneShowsItsChangesAndTrials) {
  account::RunData run;
  run.name = "optimise";
  run.meta["kind"] = "optimize";
  run.meta["conclusion"] = "2.00x as fast as before (95 % interval 1.90 to 2.10, 3 pairs)";
  run.meta["changes"] = nlohmann::json::array({tune::to_json(knobs::change_of("loader.workers", 0, 4, "in workers"))});
  tune::LoggedTrial trial;
  trial.stage = trial.verdict = "baseline";
  trial.result.ok = true;
  trial.result.rate = 10;
  run.meta["trials"] = nlohmann::json::array({tune::to_json(trial)});
  trial.stage = "step";
  trial.verdict = "kept";
  trial.changes = {{"loader.workers", 4}};
  trial.result.rate = 20;
  run.meta["trials"].push_back(tune::to_json(trial));
  tune::Verification found;
  found.baseline = {10, 10, 10};
  found.winner = {20, 19, 21};
  found.ratio = 2;
  found.interval = {1.9, 2.1};
  found.shown = true;
  run.meta["verification"] = tune::to_json(found);
  account::tidy(run);
  const std::string html = page({{run, diagnosis()}});
  expect_sound(html);
  for (const char* text : {"2.00x as fast as before", "- loader.workers: 0", "What each change brought",
                           "loader.workers=4", "2.00x [1.90, 2.10]", "pair 3", "dot run1"}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
  for (const char* text : {"of wall time", "No rule found", "No training step", "What could not be seen"}) {
    EXPECT_THAT(html.substr(html.find("<main>"), html.find("</main>") - html.find("<main>")), Not(HasSubstr(text)));
  }
}

TEST(Page, AnInconclusiveSearchShowsItsPairsAndNoInterval) {
  account::RunData run;
  run.name = "fix";
  run.meta["kind"] = "optimize";
  run.meta["conclusion"] =
      "the search is inconclusive: 2 pairs gave 2.02x and 1.41x; too few pairs, or too different, to prove";
  run.meta["changes"] = nlohmann::json::array();
  run.meta["program"] = {{"command", {"python", "train.py"}}, {"settings", {{"loader.workers", "0"}}}};
  tune::LoggedTrial trial;
  trial.stage = trial.verdict = "baseline";
  trial.result.ok = true;
  trial.result.rate = 1157;
  run.meta["trials"] = nlohmann::json::array({tune::to_json(trial)});
  trial.stage = "verify-winner";
  trial.verdict = "winner";
  trial.changes = {{"loader.workers", 4}};
  run.meta["trials"].push_back(tune::to_json(trial));
  tune::Verification found;
  found.baseline = {648.7, 1023.1};
  found.winner = {1309.3, 1447.7};
  found.ratio = 1.72;
  found.interval = {0.18, 16.13};
  run.meta["verification"] = tune::to_json(found);
  account::tidy(run);
  const std::string html = page({{run, {}}});
  expect_sound(html);
  for (const char* text : {"<h1>The search is inconclusive: 2 pairs gave 2.02x and 1.41x</h1>", "Too few pairs, or too",
                           "no gain is proven", "- loader.workers: 0", "+ loader.workers: 4", "2.02x", "1.42x",
                           "dot run1", "python train.py"}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
  for (const char* text : {"16.13", "whisker\" style", "What it brought", "What each change"}) {
    EXPECT_THAT(html, Not(HasSubstr(text))) << text;
  }
}

TEST(Page, NothingFromARecordIsMarkup) {
  const std::string evil = "</style></script><img src=x onerror=alert(1)>\"'&\xFF";
  account::RunData run = scripted_run(naive_script());
  run.name = evil;
  run.meta["command"] = {evil};
  run.meta["host"] = {{"cpu_model", evil}, {"hostname", evil}};
  run.meta["gpus"] = nlohmann::json::array({{{"name", evil}}});
  run.meta["tier"] = evil;
  tune::LoggedTrial trial;
  trial.stage = trial.verdict = trial.why = evil;
  run.meta["trials"] = nlohmann::json::array({tune::to_json(trial), {{"key", evil}}});
  run.meta["changes"] =
      nlohmann::json::array({tune::to_json(knobs::change_of("loader.workers", 0, 4, evil)), {{"knob", evil}}});
  run.settings.push_back({evil, evil, "configured", evil});
  run.metrics[evil] = {{evil, 1, 1, 10, 2.0}};
  run.missing.push_back(evil);
  run.meta["conclusion"] = run.meta["config"] = evil;
  run.meta["program"] = {{"patch", "-" + evil + "\n+" + evil}, {"run", evil}};
  run.notes.push_back({1,
                       1,
                       {{"type", "hot"},
                        {"role", evil},
                        {"phase", evil},
                        {"where", evil},
                        {"function", evil},
                        {"hits", 3},
                        {"total", 4}}});
  diagnose::Diagnosis d = diagnosis();
  d.findings[0].evidence = {evil};
  d.findings[0].where = evil;
  d.findings[0].fixes[0].reason = evil;
  d.findings[0].fixes[0].to = evil;
  d.abstained[0].missing = evil;
  account::RunData search = run;
  search.steps.clear();
  for (const auto& html : {page({{run, d}}), page({{run, d}, {run, d}}), page({{search, d}})}) {
    expect_sound(html);
    EXPECT_THAT(html, Not(HasSubstr("onerror=alert(1)>")));
    EXPECT_THAT(html, Not(HasSubstr("\xFF")));
  }
}

TEST(Page, EmptyAndShortAndCutOffRecordsSayWhatIsMissing) {
  account::RunData empty;
  account::tidy(empty);
  std::string html = page({{empty, {}}});
  expect_sound(html);
  EXPECT_THAT(html, HasSubstr("No training step was seen"));
  EXPECT_THAT(html, HasSubstr("nothing to plot"));
  EXPECT_THAT(html, HasSubstr("cut off"));
  html = page({{empty, {}}, {empty, {}}});
  expect_sound(html);
  EXPECT_THAT(html, HasSubstr("nothing to compare"));
  Script script;
  script.steps = 1;
  script.validate_every = 0;
  expect_sound(page({{scripted_run(script), {}}}));
}

std::string random_text(std::mt19937_64& random) {
  std::string text(random() % 12, ' ');
  for (char& c : text) {
    c = static_cast<char>(random());
  }
  return text;
}

nlohmann::json random_json(std::mt19937_64& random, int depth = 0) {
  switch (random() % (depth > 2 ? 5 : 7)) {
    case 0: return nullptr;
    case 1: return static_cast<std::int64_t>(random());
    case 2: return random() % 2 == 0;
    case 3: return std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 400) - 200);
    case 4: return random_text(random);
    case 5: return nlohmann::json::array({random_json(random, depth + 1), random_json(random, depth + 1)});
    default: return {{"knob", random_json(random, depth + 1)}, {"cpus_allowed", random_json(random, depth + 1)}};
  }
}

double random_value(std::mt19937_64& random) {
  switch (random() % 5) {
    case 0: return std::numeric_limits<double>::quiet_NaN();
    case 1: return std::numeric_limits<double>::infinity();
    case 2: return -std::numeric_limits<double>::max();
    case 3: return std::ldexp(1.0, static_cast<int>(random() % 2000) - 1000);
    default: return static_cast<double>(random() % 1000) / 10;
  }
}

std::int64_t random_time(std::mt19937_64& random) {
  return random() % 4 == 0 ? static_cast<std::int64_t>(random()) : static_cast<std::int64_t>(random() % 1'000'000'000);
}

account::RunData random_run(std::mt19937_64& random) {
  account::RunData run;
  run.name = random_text(random);
  for (const char* key : {"command", "host", "gpus", "outcome", "problems", "events_dropped", "changes", "trials",
                          "verification", "start_ns", "end_ns", "tier", "exit"}) {
    if (random() % 2 == 0) {
      run.meta[key] = random_json(random);
    }
  }
  const auto part = [&] { return random() % 2 == 0 ? std::optional(random_time(random)) : std::nullopt; };
  for (std::size_t i = 0; i < random() % 30; ++i) {
    record::Step step;
    step.process = static_cast<std::int64_t>(random() % 2);
    step.t_ns = random_time(random);
    step.duration_ns = random_time(random);
    step.samples = random_time(random);
    step.input_ns = part();
    step.forward_ns = part();
    step.sync_ns = part();
    step.samples_before = part();
    step.loss = random_value(random);
    run.steps.push_back(step);
    run.spans.push_back({random() % 2 == 0 ? "validate" : random_text(random), 1, random_time(random),
                         random_time(random), random_time(random)});
    run.metrics[random_text(random)].push_back(
        {"m", random_time(random), 1, random_time(random), random_value(random)});
    run.settings.push_back(
        {random_text(random), random_text(random), random() % 2 == 0 ? "effective" : "configured", ""});
  }
  for (const char* name : {"gpu.utilisation", "tree.cpu", "gpu.power"}) {
    run.series.push_back(
        {{name, "", ""}, {{random_time(random), random_value(random)}, {random_time(random), random_value(random)}}});
  }
  account::tidy(run);
  return run;
}

TEST(Page, RandomRecordsGiveSoundPagesAndComparisons) {
  std::mt19937_64 random(20);
  for (int i = 0; i < 150; ++i) {
    const account::RunData a = random_run(random);
    const account::RunData b = i % 3 == 0 ? scripted_run(Script{}) : random_run(random);
    expect_sound(page({{a, {}}}));
    expect_sound(page({{a, {}}, {b, {}}}));
    const Comparison c = compare(a, b);
    EXPECT_FALSE(to_text(c, 60, false).empty());
    EXPECT_NO_THROW(to_json(c).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  }
}

TEST(Timeline, BinsHoldWhatTheScriptSays) {
  Script script = naive_script();
  script.noise = 0;
  const account::RunData run = scripted_run(script);
  const Account account = account::account_of(run);
  const auto all = bins(account, account.timeline.wall_s(), 100);
  Bin sums{};
  for (const Bin& bin : all) {
    double whole = 0;
    for (std::size_t i = 0; i < kActivityCount; ++i) {
      sums[i] += bin[i] * account.timeline.wall_s() / 100;
      whole += bin[i];
    }
    EXPECT_LE(whole, 1 + 1e-9);
  }
  EXPECT_NEAR(sums[kStartup], script.startup_s, 0.01);
  EXPECT_NEAR(sums[kValidate], 4 * script.validate_s, 0.01);
  double input_s = 0;
  for (const auto& step : run.steps) {
    input_s += static_cast<double>(*step.input_ns) / 1e9;
  }
  EXPECT_NEAR(sums[account::kInput], input_s, 0.01);
}

TEST(Record, WrittenAndReadBackIsTheSameRun) {
  const TemporaryFolder folder;
  const account::RunData written = scripted_run(gpu_script());
  testing::write_record(written, folder.path() / "keypoint-h100");
  const account::RunData read = account::load_run(folder.path() / "keypoint-h100");
  EXPECT_EQ(read.name, "keypoint-h100");
  EXPECT_EQ(read.steps.size(), written.steps.size());
  EXPECT_EQ(page({{written, {}}}), page({{read, {}}}));
  EXPECT_EQ(account::load_run(folder.path() / "keypoint-h100" / "record.db").steps.size(), written.steps.size());
}

TEST(Record, WhatIsNoRecordIsBadInput) {
  try {
    account::load_run("/nonexistent/record");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
  }
}

}  // namespace
}  // namespace unidle::report
