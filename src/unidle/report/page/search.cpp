#include "unidle/report/page/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "unidle/base/json.h"
#include "unidle/base/units.h"
#include "unidle/experiment/ratio.h"
#include "unidle/language/sentence.h"
#include "unidle/report/page/code.h"
#include "unidle/report/page/opening.h"
#include "unidle/tune/output/result.h"

namespace unidle::report {

namespace {

using tune::LoggedTrial;

tune::Recorded recorded_in(const account::RunData& run) {
  return tune::recorded(run.meta_value("changes"), run.meta_value("trials"), run.meta_value("verification"));
}

bool is_turn(const LoggedTrial& trial) { return trial.stage == "again" || trial.stage == "reference"; }
bool is_of_search(const LoggedTrial& trial) { return !is_turn(trial) && !trial.stage.starts_with("verify"); }
bool is_rate(double value) { return std::isfinite(value) && value > 0; }

/// "loader.workers=4", or "without loader.workers": what the settings have that `before` has not.
std::string added_words(const knobs::Settings& before, const knobs::Settings& after) {
  knobs::Settings added = after;
  added.erase_if([&](const auto& setting) { return before.has(setting.first, setting.second); });
  std::string words = added.empty() ? "" : knobs::describe(added);
  for (const auto& [knob, value] : before) {
    if (!after.contains(knob)) {
      words += fmt::format("{}-{}", words.empty() ? "" : ", ", knob);
    }
  }
  return words;
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

std::optional<Interval> scaled(const std::optional<Interval>& interval, double factor) {
  return interval ? std::optional(Interval{interval->low * factor, interval->high * factor}) : std::nullopt;
}

Html waterfall(const tune::Recorded& recorded, const Translator& translator) {
  const LoggedTrial* baseline = baseline_of(recorded.trials);
  const std::vector<Gain> steps = gains(recorded.trials);
  if (baseline == nullptr || (steps.empty() && !recorded.verification)) {
    return {};
  }
  const double start = baseline->result.rate;
  const auto& verified = recorded.verification;
  const bool known = verified && is_rate(verified->ratio) && std::isfinite(verified->interval.high);
  double longest = start;
  for (const Gain& gain : steps) {
    longest = std::max({longest, gain.after, gain.interval ? gain.before * gain.interval->high : 0});
  }
  longest = known ? std::max({longest, start * verified->ratio, start * verified->interval.high}) : longest;
  if (!std::isfinite(longest)) {
    return {};
  }
  const std::string unit = translator.word("samples/s");
  Html bars = fall(translator.word("unchanged"), 0, start, {}, longest, "run0", format_number(start) + " " + unit);
  for (const Gain& gain : steps) {
    bars += fall(gain.what, gain.before, gain.after, scaled(gain.interval, gain.before), longest,
                 gain.after >= gain.before ? "gain" : "loss", ratio_text(gain.ratio, gain.interval));
  }
  if (known) {
    bars += fall(translator.say("verified in {} pairs", verified->winner.size()), 0, start * verified->ratio,
                 scaled(verified->interval, start), longest, "run1", ratio_text(verified->ratio, verified->interval));
  }
  return element("ol.bars.falls", bars) +
         element("p.quiet", translator.say("Samples/s of the search. Thin lines are 95 % intervals, where a change was "
                                           "measured again; the last bar is of fresh alternating runs."));
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

Html verification_html(const tune::Verification& found, const Translator& translator) {
  return table(
      translator.say("Verification against the baseline"), {},
      {{translator.word("speed"),
        translator.say("{:.2f}x as fast (95 % interval {:.2f} to {:.2f}, {} pairs)", found.ratio, found.interval.low,
                       found.interval.high, found.winner.size())},
       {translator.word("learns as well"),
        !found.compared     ? translator.say("nothing to compare")
        : found.parity.held ? translator.word("yes")
                            : translator.say("no: {}", translate_sentence(translator.language, found.parity.why))}});
}

/// The verified rates, of which the interval is that of their ratio.
Html verified_bars(const tune::Recorded& recorded, const Translator& translator) {
  const auto& found = recorded.verification;
  if (!found || found->baseline.empty() || !std::ranges::all_of(found->baseline, is_rate) || !is_rate(found->ratio)) {
    return {};
  }
  const double before = median(found->baseline);
  return rate_bars({{translator.word("unchanged"), before, {}, "run0", ""},
                    {translator.word("changed"), before * found->ratio, scaled(found->interval, before), "run1",
                     fmt::format("({:.2f}x)", found->ratio)}},
                   translator.word("samples/s"));
}

Html written_changes(const std::vector<knobs::Change>& changes, const Translator& translator) {
  Html out;
  for (const knobs::Change& change : changes) {
    const std::string gain = change.gain ? translator.say(" (gain {:.2f}x)", *change.gain) : "";
    out += element("div.fix",
                   lines_change_html(change.from ? std::vector{change.knob + ": " + change.from->to_text()}
                                                 : std::vector<std::string>{},
                                     {change.knob + ": " + change.to->to_text()}),
                   element("p.quiet", translate_sentence(translator.language, change.reason),
                           gain.empty() ? Html() : element("b", gain)));
  }
  return out;
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
    const auto repeated = experiment::ratio_of(turns_before(trials, i));
    Gain gain{added_words(settings, trial.changes), rate, 0, trial.result.rate / best, {}};
    if (repeated) {
      gain.ratio = repeated->value;
      gain.interval = repeated->interval;
    }
    gain.after = rate * gain.ratio;
    rate = gain.after;
    best = trial.result.rate;
    settings = trial.changes;
    steps.push_back(std::move(gain));
  }
  return steps;
}

std::string search_answer(const account::RunData& run, const Translator& translator) {
  if (std::string words = run.meta_text("conclusion"); !words.empty()) {
    return translate_sentence(translator.language, words);
  }
  const auto found = recorded_in(run).verification;
  return found ? translator.say("{:.2f}x as fast (95 % interval {:.2f} to {:.2f}, {} pairs)", found->ratio,
                                found->interval.low, found->interval.high, found->winner.size())
               : translator.say("A search for faster settings");
}

Html search_opening(const account::RunData& run, const Translator& translator) {
  const tune::Recorded recorded = recorded_in(run);
  Html changes = written_changes(recorded.changes, translator);
  if (const auto program = run.meta_value("program"); program.is_object()) {
    const std::string patch = text_in(program, "patch");
    const std::string command = text_in(program, "run");
    changes += patch.empty() ? Html() : patch_html(patch);
    changes += command.empty() ? Html() : command_to_copy(command);
  }
  const Html bars = verified_bars(recorded, translator);
  return (changes.empty() ? Html()
                          : element("div.change", element("h2", translator.say("What was changed")),
                                    place_html(run.meta_text("config")), changes)) +
         (bars.empty() ? bars : element("div.gain", element("h2", translator.say("What it brought")), bars));
}

Html search_sections(const account::RunData& run, const Translator& translator) {
  const tune::Recorded recorded = recorded_in(run);
  Html out = section(translator.say("What each change brought"), waterfall(recorded, translator));
  out += section(translator.word("Trials"), trials_html(recorded.trials, translator));
  if (recorded.verification) {
    out += section(translator.word("Verification"), verification_html(*recorded.verification, translator));
  }
  if (recorded.unreadable > 0) {
    out +=
        element("p.quiet", translator.say("entries of another form in the record, left out: {}", recorded.unreadable));
  }
  return out;
}

}  // namespace unidle::report
