#include "unidle/report/page/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "unidle/base/units.h"
#include "unidle/experiment/ratio.h"
#include "unidle/language/sentence.h"
#include "unidle/report/comparison_words.h"
#include "unidle/report/page/pairs.h"
#include "unidle/report/page/recorded_search.h"
#include "unidle/tune/output/result.h"

namespace unidle::report {

namespace {

using tune::LoggedTrial;

bool is_turn(const LoggedTrial& trial) { return trial.stage == "again" || trial.stage == "reference"; }
bool is_of_search(const LoggedTrial& trial) { return !is_turn(trial) && !trial.stage.starts_with("verify"); }
/// Sets what `after` has and `before` lacks, and the reverse; see Gain.
void set_difference(Gain& gain, const knobs::Settings& before, const knobs::Settings& after) {
  knobs::Settings added = after;
  added.erase_if([&](const auto& setting) { return before.has(setting.first, setting.second); });
  gain.what = added.empty() ? "" : knobs::describe(added);
  for (const auto& [knob, value] : before) {
    if (!after.contains(knob)) {
      gain.without += (gain.without.empty() ? "" : ", ") + knob;
    }
  }
}

std::string gain_words(const Gain& gain, const Translator& translator) {
  const std::string without = gain.without.empty() ? "" : translator.say("without {}", gain.without);
  return gain.what + (gain.what.empty() || without.empty() ? "" : ", ") + without;
}

/// Neighbouring runs of the best before and of the change, in the turns right before the trial at `index`.
std::vector<experiment::PairOfRates> turns_before(const std::vector<LoggedTrial>& trials, std::size_t index) {
  std::size_t begin = index;
  while (begin > 0 && is_turn(trials[begin - 1])) {
    --begin;
  }
  std::vector<experiment::PairOfRates> pairs;
  for (std::size_t i = begin; i + 1 < index; ++i) {
    const bool reference_first = trials[i].stage == "reference";
    const LoggedTrial& reference = trials[reference_first ? i : i + 1];
    const LoggedTrial& changed = trials[reference_first ? i + 1 : i];
    if (reference.stage != changed.stage && is_rate(reference.result.rate) && is_rate(changed.result.rate)) {
      pairs.push_back({{reference.result.rate, {}}, {changed.result.rate, {}}});
      ++i;
    }
  }
  return pairs;
}

const LoggedTrial* baseline_of(const std::vector<LoggedTrial>& trials) {
  const auto found = std::ranges::find_if(
      trials, [](const LoggedTrial& trial) { return trial.stage == "baseline" && is_rate(trial.result.rate); });
  return found == trials.end() ? nullptr : &*found;
}

/// A bar of the waterfall, from one rate to another, on a scale up to `longest`.
Html fall(const std::string& label, double from, double to, const std::optional<Interval>& range, double longest,
          std::string_view css, const std::string& value) {
  const Html whisker = range ? element("i.whisker", place_of(range->low / longest, range->high / longest)) : Html();
  const Html piece =
      element(fmt::format("i.{}", css), place_of(std::min(from, to) / longest, std::max(from, to) / longest));
  return element("li", element("span.name", label), element("span.track", piece, whisker),
                 element("span.value", value));
}

std::string ratio_text(double ratio, const std::optional<Interval>& interval) {
  return interval ? fmt::format("{:.2f}x [{:.2f}, {:.2f}]", ratio, interval->low, interval->high)
                  : fmt::format("{:.2f}x", ratio);
}

Html waterfall(const tune::Recorded& recorded, const Translator& translator) {
  const LoggedTrial* baseline = baseline_of(recorded.trials);
  const std::vector<Gain> steps = gains(recorded.trials);
  if (baseline == nullptr || (steps.empty() && !proven(recorded))) {
    return {};
  }
  const double start = baseline->result.rate;
  const auto verified = proven(recorded) ? recorded.verification : std::nullopt;
  const auto range = verified ? scaled(interval_shown(*verified), start) : std::nullopt;
  double longest = start;
  for (const Gain& gain : steps) {
    longest = std::max({longest, gain.after, gain.interval ? gain.before * gain.interval->high : 0});
  }
  longest = std::max({longest, verified ? start * verified->ratio : 0, range ? range->high : 0});
  if (!std::isfinite(longest)) {
    return {};
  }
  const std::string unit = translator.word("samples/s");
  Html bars = fall(translator.word("unchanged"), 0, start, {}, longest, "run0", format_number(start) + " " + unit);
  for (const Gain& gain : steps) {
    const std::string_view css = gain.after < gain.before ? "loss" : verified ? "gain" : "bound";
    bars += fall(gain_words(gain, translator), gain.before, gain.after, scaled(gain.interval, gain.before), longest,
                 css, ratio_text(gain.ratio, gain.interval));
  }
  if (verified) {
    bars += fall(translator.say("verified in {} pairs", verified->winner.size()), 0, start * verified->ratio, range,
                 longest, "run1", ratio_text(verified->ratio, interval_shown(*verified)));
  }
  return element("ol.bars.falls", bars) +
         element("p.quiet",
                 verified ? translator.say("Samples/s of the search. Thin lines are 95 % intervals, shown from three "
                                           "pairs on. The last bar is the verification.")
                          : translator.say("Samples/s of the search, as each change was tried. None of it is proven."));
}

std::vector<std::string> trial_row(const LoggedTrial& trial, const LoggedTrial* baseline,
                                   const Translator& translator) {
  const bool ok = trial.result.ok && is_rate(trial.result.rate);
  return {std::to_string(trial.index),
          trial.changes.empty() ? translator.word("unchanged") : knobs::describe(trial.changes),
          ok ? format_number(trial.result.rate) : "-",
          ok && baseline != nullptr ? fmt::format("{:.2f}x", trial.result.rate / baseline->result.rate) : "-",
          translator.word(trial.verdict)};
}

Html trials_html(const std::vector<LoggedTrial>& trials, const Translator& translator) {
  const LoggedTrial* baseline = baseline_of(trials);
  std::vector<std::vector<std::string>> main;
  std::vector<std::vector<std::string>> all;
  for (const LoggedTrial& trial : trials) {
    if (is_of_search(trial)) {
      main.push_back(trial_row(trial, baseline, translator));
    }
    all.push_back({std::to_string(trial.index), tune::stage_in_words(trial, translator.language),
                   trial.result.ok ? format_number(trial.result.rate) : "-",
                   trial.result.loss ? format_number(*trial.result.loss) : "-", translator.word(trial.verdict),
                   translate_sentence(translator.language, trial.why)});
  }
  if (all.empty()) {
    return {};
  }
  const std::string caption = translator.say("Trials of the optimising run");
  return table(caption,
               {translator.word("trial"), translator.word("change"), translator.word("samples/s"),
                translator.word("ratio"), translator.word("verdict")},
               main) +
         element("details", element("summary", translator.say("all {} runs, with repetitions", all.size())),
                 table(caption,
                       {translator.word("trial"), translator.word("stage"), translator.word("samples/s"), "loss",
                        translator.word("verdict"), translator.word("what")},
                       all));
}

Html verification_html(const tune::Recorded& recorded, const Translator& translator) {
  const tune::Verification& found = *recorded.verification;
  return (proven(recorded) ? pairs_html(found, translator) : Html()) +
         table(translator.say("Verification against the baseline"), {}, verification_rows(found, translator));
}

}  // namespace

bool is_search(const account::RunData& run) {
  return run.meta.contains("trials") || run.meta.contains("changes") || run.meta.contains("verification");
}

std::vector<Gain> gains(const std::vector<LoggedTrial>& trials) {
  const LoggedTrial* baseline = baseline_of(trials);
  std::vector<Gain> steps;
  if (baseline == nullptr) {
    return steps;
  }
  double best = baseline->result.rate;  // as measured
  double rate = best;                   // as the ratios say
  knobs::Settings settings;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const LoggedTrial& trial = trials[i];
    if ((trial.verdict != "kept" && trial.verdict != "reverted") || !is_rate(trial.result.rate)) {
      continue;
    }
    const std::vector<experiment::PairOfRates> pairs = turns_before(trials, i);
    const auto repeated = experiment::ratio_of(pairs);
    Gain gain{{}, {}, rate, 0, trial.result.rate / best, {}};
    set_difference(gain, settings, trial.changes);
    if (repeated) {
      gain.ratio = repeated->value;
      gain.interval = pairs.size() < tune::kPairsOfAnInterval ? std::nullopt : repeated->interval;
    }
    gain.after = rate * gain.ratio;
    rate = gain.after;
    best = trial.result.rate;
    settings = trial.changes;
    steps.push_back(std::move(gain));
  }
  return steps;
}

Html search_sections(const account::RunData& run, const Translator& translator) {
  const tune::Recorded recorded = recorded_in(run);
  Html out = section(proven(recorded) ? translator.say("What each change brought")
                                      : translator.say("What each change seemed to bring"),
                     waterfall(recorded, translator));
  out += section(translator.word("Trials"), trials_html(recorded.trials, translator));
  if (recorded.verification) {
    out += section(translator.word("Verification"), verification_html(recorded, translator));
  }
  if (recorded.unreadable > 0) {
    out +=
        element("p.quiet", translator.say("entries of another form in the record, left out: {}", recorded.unreadable));
  }
  return out;
}

}  // namespace unidle::report
