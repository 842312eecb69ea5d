// A comparison as unidle.comparison/1.
#include <cmath>

#include "unidle/report/comparison.h"
#include "unidle/report/figures.h"
#include "unidle/report/scaling.h"

namespace unidle::report {

namespace {

using nlohmann::json;

json number(double value) { return std::isfinite(value) ? json(value) : json(); }
json number(const std::optional<double>& value) { return value ? number(*value) : json(); }
json text(const std::optional<std::string>& value) { return value ? json(*value) : json(); }

json with_interval(double value, const std::optional<Interval>& interval) {
  return {{"value", number(value)},
          {"low", interval ? number(interval->low) : json()},
          {"high", interval ? number(interval->high) : json()}};
}

json rate(const std::optional<Rate>& rate) { return rate ? with_interval(rate->value, rate->interval) : json(); }

std::string_view word(experiment::SpeedChange change) {
  switch (change) {
    case experiment::SpeedChange::kNoDifference: return "no-difference";
    case experiment::SpeedChange::kFaster: return "faster";
    case experiment::SpeedChange::kSlower: return "slower";
    case experiment::SpeedChange::kRegression: return "regression";
    default: return "unknown";
  }
}

std::string_view word(experiment::Verdict verdict) {
  switch (verdict) {
    case experiment::Verdict::kEqual: return "equal";
    case experiment::Verdict::kBetter: return "better";
    case experiment::Verdict::kWorse: return "worse";
    default: return "not-comparable";
  }
}

json ratio(const std::optional<experiment::Ratio>& ratio, experiment::SpeedChange change) {
  json out = ratio ? with_interval(ratio->value, ratio->interval) : with_interval(std::nan(""), std::nullopt);
  out["change"] = word(change);
  return out;
}

json side(const Summary& s) {
  json step = json::object();
  json shares = json::object();
  for (std::size_t part = 0; part < kPartCount; ++part) {
    const std::string name(kPartNames[part]);
    step[name] = s.step_s[part] ? number(*s.step_s[part] * 1e3) : json();
    shares[name] =
        s.step_s[part] && s.whole_step_s && *s.whole_step_s > 0 ? number(*s.step_s[part] / *s.whole_step_s) : json();
  }
  step["whole"] = s.whole_step_s ? number(*s.whole_step_s * 1e3) : json();
  json all = {{"name", s.name},
              {"outcome", s.outcome},
              {"training_samples_per_s", rate(s.throughput.training)},
              {"total_samples_per_s", rate(s.throughput.total)},
              {"steps", s.throughput.steps},
              {"warm_up_steps", s.throughput.warm_up},
              {"samples_per_step", number(s.samples_per_step)},
              {"step_ms", step},
              {"step_share", shares},
              {"time_s",
               {{"startup", s.phases.startup},
                {"train", s.phases.train},
                {"validate", s.phases.validate},
                {"checkpoint", s.phases.checkpoint},
                {"other", s.phases.other},
                {"wall", s.wall_s}}},
              {"ranks", s.ranks},
              {"rank_wait_ms", s.rank_wait_s ? number(*s.rank_wait_s * 1e3) : json()},
              {"validations", s.validations},
              {"checkpoints", s.checkpoints},
              {"rough", s.rough}};
  for (const Figure& figure : figures()) {
    all[std::string(figure.key)] = number(s.*figure.value);
  }
  return all;
}

json measure(const experiment::Measure& p) {
  const bool compared = p.verdict != experiment::Verdict::kNotComparable && p.why.empty();
  return {{"name", p.name},
          {"verdict", word(p.verdict)},
          {"judged", p.judged},
          {"samples", compared ? number(p.samples) : json()},
          {"a", compared ? number(p.a) : json()},
          {"b", compared ? number(p.b) : json()},
          {"allowed", compared && p.judged ? number(p.allowed) : json()},
          {"why", p.why.empty() ? json() : json(p.why)}};
}

json scaling(const std::optional<Scaling>& found) {
  if (!found) {
    return nullptr;
  }
  return {{"ranks", {found->fewer, found->more}},
          {"efficiency", with_interval(found->efficiency.value, found->efficiency.interval)}};
}

}  // namespace

json to_json(const Comparison& c) {
  json settings = json::array();
  for (const SettingDifference& setting : c.settings) {
    settings.push_back({{"knob", setting.knob},
                        {"configured", {{"a", text(setting.configured_a)}, {"b", text(setting.configured_b)}}},
                        {"effective", {{"a", text(setting.effective_a)}, {"b", text(setting.effective_b)}}}});
  }
  json metrics = json::array();
  for (std::size_t i = 1; i < c.learning.measures.size(); ++i) {
    metrics.push_back(measure(c.learning.measures[i]));
  }
  json pairs = json::array();
  for (const RunPair& pair : c.pairs) {
    pairs.push_back({{"a", number(pair.a)}, {"b", number(pair.b)}, {"ratio", number(pair.ratio)}});
  }
  return {{"schema", "unidle.comparison/1"},
          {"pairs", c.pairs.empty() ? json() : pairs},
          {"answer", headline(c)},
          {"regression", c.regression()},
          {"regressions", c.regressions},
          {"tolerance", c.tolerance},
          {"a", side(c.a)},
          {"b", side(c.b)},
          {"training_ratio", ratio(c.training_ratio, c.training)},
          {"total_ratio", ratio(c.total_ratio, c.total)},
          {"scaling", scaling(scaling_of(c, Translator{}))},
          {"loss", measure(c.learning.measures.front())},
          {"metrics", metrics},
          {"settings", settings},
          {"changes", c.changes},
          {"trials", c.trials},
          {"verification", c.verification},
          {"notes", c.notes}};
}

}  // namespace unidle::report
