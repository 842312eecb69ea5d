#include "unidle/report/comparison_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/json.h"
#include "unidle/base/units.h"
#include "unidle/language/sentence.h"
#include "unidle/report/figures.h"
#include "unidle/tune/output/recorded.h"
#include "unidle/tune/output/result.h"

namespace unidle::report {

namespace {

constexpr const char* kAbsent = "-";

std::string rate_words(const std::optional<Rate>& rate) {
  if (!rate) {
    return kAbsent;
  }
  return rate->interval ? fmt::format("{} [{}, {}]", format_number(rate->value), format_number(rate->interval->low),
                                      format_number(rate->interval->high))
                        : format_number(rate->value);
}

std::string ratio_words(const std::optional<experiment::Ratio>& ratio, experiment::SpeedChange change,
                        const Translator& translator) {
  if (!ratio) {
    return kAbsent;
  }
  if (!ratio->interval) {
    return translator.say("{:.2f}x, too few steps", ratio->value);
  }
  const std::string words =
      fmt::format("{:.2f}x [{:.2f}, {:.2f}]", ratio->value, ratio->interval->low, ratio->interval->high);
  return change == experiment::SpeedChange::kNoDifference ? words + translator.say(" no difference shown") : words;
}

std::string part_of(const std::optional<double>& part, const std::optional<double>& whole) {
  if (!part || !whole) {
    return kAbsent;
  }
  return *whole > 0 ? fmt::format("{} ({:.0f} %)", step_words(part), *part / *whole * 100) : step_words(part);
}

/// A part of the step; the wait for other ranks has a row of its own.
std::optional<double> without_wait(const Summary& run, std::size_t part) {
  std::optional<double> seconds = run.step_s[part];
  if (part == kCompute && seconds) {
    *seconds -= run.rank_wait_s.value_or(0);
  }
  return seconds;
}

std::string reading(const std::optional<std::string>& configured, const std::optional<std::string>& effective,
                    const Translator& translator) {
  if (configured && effective && *configured != *effective) {
    return translator.say("{} (in effect {})", *configured, *effective);
  }
  return effective ? *effective : configured ? *configured : kAbsent;
}

std::string difference_words(const experiment::Measure& measure, const Translator& translator) {
  const double difference = measure.b - measure.a;
  std::string words = fmt::format("{}{:.2g}", difference > 0 ? "+" : "", difference);
  if (measure.judged) {
    words += measure.verdict == experiment::Verdict::kWorse    ? translator.word(" worse")
             : measure.verdict == experiment::Verdict::kBetter ? translator.word(" better")
                                                               : translator.word(" equal");
  }
  return words;
}

}  // namespace

std::string duration_words(double seconds) { return seconds > 0 ? format_seconds(seconds) : "0 s"; }

std::string change_words(double before, double after) {
  if (before <= 0 || after <= 0) {
    return "";
  }
  const double change = std::round((after / before - 1) * 100) + 0.0;  // avoids "-0"
  return fmt::format("{}{:.0f} %", change > 0 ? "+" : "", change);
}

std::string step_words(const std::optional<double>& seconds) {
  if (!seconds) {
    return kAbsent;
  }
  const double ms = *seconds * 1e3;
  return fmt::format("{:.{}f} ms", ms, ms >= 100 ? 0 : ms >= 10 ? 1 : 2);
}

std::string part_label(Part part, const Translator& translator) {
  switch (part) {
    case kInput: return translator.say("input wait");
    case kTransfer: return translator.word("transfer");
    case kCompute: return translator.word("compute");
    case kSync: return translator.word("sync");
    case kOptimizer: return translator.word("optimizer");
    default: return translator.word("other");
  }
}

std::vector<WordRow> throughput_rows(const Comparison& c, const Translator& translator) {
  const Throughput& a = c.a.throughput;
  const Throughput& b = c.b.throughput;
  std::vector<WordRow> rows = {
      {translator.say("training samples/s"),
       {rate_words(a.training), rate_words(b.training), ratio_words(c.training_ratio, c.training, translator)}},
      {translator.say("end-to-end samples/s"),
       {rate_words(a.total), rate_words(b.total), ratio_words(c.total_ratio, c.total, translator)}},
      {translator.say("steps counted"), {std::to_string(a.steps), std::to_string(b.steps), ""}},
  };
  if (c.a.ranks > 1 || c.b.ranks > 1) {
    rows.push_back({translator.word("ranks"), {std::to_string(c.a.ranks), std::to_string(c.b.ranks), ""}});
  }
  for (const Figure& figure : figures()) {
    const std::optional<double>& before = c.a.*figure.value;
    const std::optional<double>& after = c.b.*figure.value;
    const bool wanted = !figure.label.empty() && (!figure.when_rough || c.a.rough || c.b.rough);
    if (wanted && (before || after)) {
      const auto words = [&](const std::optional<double>& value) { return value ? figure.words(*value) : kAbsent; };
      rows.push_back(
          {translator.word(figure.label),
           {words(before), words(after), figure.changes ? change_words(before.value_or(0), after.value_or(0)) : ""}});
    }
  }
  return rows;
}

std::vector<WordRow> step_rows(const Comparison& c, const Translator& translator) {
  std::vector<WordRow> rows;
  if (!c.a.whole_step_s && !c.b.whole_step_s) {
    return rows;
  }
  const auto add = [&](std::string label, const std::optional<double>& a, const std::optional<double>& b) {
    if (a || b) {
      rows.push_back(
          {std::move(label),
           {part_of(a, c.a.whole_step_s), part_of(b, c.b.whole_step_s), a && b ? change_words(*a, *b) : ""}});
    }
  };
  for (std::size_t part = 0; part < kPartCount; ++part) {
    add(part_label(static_cast<Part>(part), translator), without_wait(c.a, part), without_wait(c.b, part));
    if (part == kCompute) {
      add(translator.say("waits for other ranks"), c.a.rank_wait_s, c.b.rank_wait_s);
    }
  }
  const bool both = c.a.whole_step_s && c.b.whole_step_s;
  rows.push_back({translator.say("whole step"),
                  {step_words(c.a.whole_step_s), step_words(c.b.whole_step_s),
                   both ? change_words(*c.a.whole_step_s, *c.b.whole_step_s) : ""}});
  if (c.a.samples_per_step || c.b.samples_per_step) {
    const auto words = [](const std::optional<double>& value) { return value ? format_number(*value) : kAbsent; };
    rows.push_back(
        {translator.say("samples per step"), {words(c.a.samples_per_step), words(c.b.samples_per_step), ""}});
  }
  return rows;
}

std::vector<WordRow> phase_rows(const Comparison& c, const Translator& translator) {
  std::vector<WordRow> rows;
  const auto add = [&](std::string label, double a, double b) {
    if (a > 0 || b > 0) {
      rows.push_back({std::move(label), {duration_words(a), duration_words(b), change_words(a, b)}});
    }
  };
  add(translator.word("start-up"), c.a.phases.startup, c.b.phases.startup);
  add(translator.word("training"), c.a.phases.train, c.b.phases.train);
  add(translator.word("validation"), c.a.phases.validate, c.b.phases.validate);
  add(translator.word("checkpoints"), c.a.phases.checkpoint, c.b.phases.checkpoint);
  add(translator.word("other"), c.a.phases.other, c.b.phases.other);
  add(translator.word("whole run"), c.a.wall_s, c.b.wall_s);
  return rows;
}

std::vector<WordRow> learning_rows(const Comparison& c, const Translator& translator) {
  std::vector<WordRow> rows;
  const auto add = [&](const experiment::Measure& measure) {
    if (measure.verdict != experiment::Verdict::kNotComparable && measure.why.empty()) {
      rows.push_back({translator.say("{} at {} samples", measure.name, format_number(measure.samples)),
                      {fmt::format("{:.4g}", measure.a), fmt::format("{:.4g}", measure.b),
                       difference_words(measure, translator)}});
    }
  };
  std::for_each(c.learning.measures.begin(), c.learning.measures.end(), add);
  return rows;
}

std::vector<WordRow> setting_rows(const Comparison& c, const Translator& translator) {
  std::vector<WordRow> rows;
  for (const SettingDifference& setting : c.settings) {
    rows.push_back({setting.knob,
                    {reading(setting.configured_a, setting.effective_a, translator),
                     reading(setting.configured_b, setting.effective_b, translator)}});
  }
  return rows;
}

std::string plain_text(const nlohmann::json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (value.is_number_float()) {
    return format_number(value.get<double>());
  }
  return value.is_null() ? kAbsent : json_text(value, -1);
}

std::vector<std::string> trial_columns(const Translator& translator) {
  return {translator.word("trial"),   translator.word("stage"), translator.word("samples/s"), "loss",
          translator.word("verdict"), translator.word("what")};
}

std::string verified_words(const tune::Verification& found, const Translator& translator) {
  const std::vector<double> pairs = found.ratios();
  switch (pairs.size()) {
    case 0: return translator.say("{:.2f}x as fast", found.ratio);
    case 1: return translator.say("{:.2f}x as fast in one pair", pairs[0]);
    case 2: return translator.say("{:.2f}x and {:.2f}x as fast in two pairs", pairs[0], pairs[1]);
    default:
      return translator.say("{:.2f}x as fast (95 % interval {:.2f} to {:.2f}, {} pairs)", found.ratio,
                            found.interval.low, found.interval.high, pairs.size());
  }
}

std::vector<std::vector<std::string>> verification_rows(const tune::Verification& found, const Translator& translator) {
  return {{translator.word("speed"), verified_words(found, translator)},
          {translator.word("learns as well"),
           !found.compared     ? translator.say("nothing to compare")
           : found.parity.held ? translator.word("yes")
                               : translator.say("no: {}", translate_sentence(translator.language, found.parity.why))}};
}

OptimiseWords optimise_words(const nlohmann::json& changes, const nlohmann::json& trials,
                             const nlohmann::json& verification, const Translator& translator) {
  const tune::Recorded recorded = tune::recorded(changes, trials, verification);
  OptimiseWords words;
  for (const knobs::Change& change : recorded.changes) {
    const std::string gain = change.gain ? translator.say(" (gain {:.2f}x)", *change.gain) : "";
    words.changes.push_back({fmt::format("{}: {} -> {}{}", change.knob, change.from ? change.from->to_text() : kAbsent,
                                         change.to->to_text(), gain),
                             translate_sentence(translator.language, change.reason)});
  }
  for (const tune::LoggedTrial& trial : recorded.trials) {
    words.trials.push_back({std::to_string(trial.index), tune::stage_in_words(trial, translator.language),
                            trial.result.ok ? format_number(trial.result.rate) : kAbsent,
                            trial.result.loss ? format_number(*trial.result.loss) : kAbsent,
                            translator.word(trial.verdict), translate_sentence(translator.language, trial.why)});
  }
  if (recorded.verification) {
    words.verification = verification_rows(*recorded.verification, translator);
  }
  if (recorded.unreadable > 0) {
    words.unreadable = translator.say("entries of another form in the record, left out: {}", recorded.unreadable);
  }
  return words;
}

}  // namespace unidle::report
