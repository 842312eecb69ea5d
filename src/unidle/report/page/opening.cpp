#include "unidle/report/page/opening.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/units.h"
#include "unidle/knobs/run_options.h"
#include "unidle/report/comparison_words.h"

namespace unidle::report {

namespace {

constexpr double kWorthABar = 1.02;  // a smaller gain is no bar of another length

std::string rate_note(const Rate& rate, const Translator& translator) {
  return rate.interval ? translator.say("95 % interval {} to {}", format_number(rate.interval->low),
                                        format_number(rate.interval->high))
                       : translator.say("too few steps for an interval");
}

/// Samples of all steps over the whole recorded time.
double rate_of_run(const Shown& shown) {
  double samples = 0;
  for (const account::Period& period : shown.account.periods) {
    samples += period.samples;
  }
  const double wall_s = shown.account.timeline.wall_s();
  return wall_s > 0 ? samples / wall_s : 0;
}

Html longer_run_html(const diagnose::Diagnosis& diagnosis, const Translator& translator) {
  const auto bound = diagnose::bound_of_longer_run(diagnosis, diagnosis.findings.front());
  return bound ? element("p", translator.say("A longer run gains more: at best {:.1f}x in training.", *bound)) : Html();
}

}  // namespace

std::string with_capital(std::string words) {
  if (!words.empty() && words[0] >= 'a' && words[0] <= 'z') {
    words[0] = static_cast<char>(words[0] - 'a' + 'A');
  }
  return words;
}

Html opening(std::string_view names, std::string_view answer, const Html& below) {
  return element("header", element("p.brand", element("b", "unidle report"), " ", names), element("h1", answer),
                 below) +
         Html{"\n"};
}

Html command_html(const RunData& run) {
  const auto command = run.meta.find(record::meta::kCommand);
  if (command == run.meta.end() || !command->is_array() || command->empty()) {
    return {};
  }
  std::string words;
  for (const auto& word : *command) {
    words += (words.empty() ? "" : " ") + plain_text(word);
  }
  // With the options that make it another run: what was applied, above all.
  const knobs::RunOptions options = knobs::run_options_from(run.meta_value(record::meta::kRunOptions));
  return element("p.command", element("code", knobs::with_options(knobs::in_words(options), words)));
}

Html run_words(const Entry& entry, const Summary& summary, const Translator& translator) {
  std::vector<std::string> facts;
  if (entry.diagnosis) {
    facts.push_back(translator.say("run {}", translator.word(to_string(entry.diagnosis->outcome))));
    facts.push_back(translator.word(to_string(entry.diagnosis->verdict)));
  }
  if (summary.wall_s > 0) {
    facts.push_back(translator.say("{} of wall time", format_seconds(summary.wall_s)));
  }
  facts.push_back(translator.say("{} steps", summary.throughput.steps + summary.throughput.warm_up));
  std::string words;
  for (const std::string& fact : facts) {
    words += (words.empty() ? "" : " \u00b7 ") + fact;
  }
  return element("p.quiet", words);
}

Html rate_bars(const std::vector<RateBar>& bars, const std::string& unit) {
  double longest = 0;
  for (const RateBar& bar : bars) {
    longest = std::max({longest, bar.value, bar.interval ? bar.interval->high : 0});
  }
  if (!(longest > 0) || !std::isfinite(longest)) {
    return {};
  }
  Html out;
  for (const RateBar& bar : bars) {
    const Html whisker = bar.interval
                             ? element("i.whisker", place_of(bar.interval->low / longest, bar.interval->high / longest))
                             : Html();
    out += element("li", element("span.name", bar.label),
                   element("span.track", element(fmt::format("i.{}", bar.css), width_of(bar.value / longest)), whisker),
                   element("span.value", element("b", format_number(bar.value)), " ", unit,
                           bar.note.empty() ? Html() : element("span.quiet", " " + bar.note)));
  }
  return element("ol.bars.rates", out);
}

Html gain_bars(const Shown& shown, const diagnose::Diagnosis& diagnosis, const Translator& translator) {
  if (diagnosis.findings.empty() || diagnosis.findings.front().severity == diagnose::Severity::kInfo) {
    return {};
  }
  const double bound = diagnosis.findings.front().speedup_bound.value_or(1);
  const double now = rate_of_run(shown);
  if (bound < kWorthABar || !(now > 0)) {
    return {};
  }
  return rate_bars({{translator.word("now"), now, {}, "run0", ""},
                    {translator.say("at best"), now * bound, {}, "bound", fmt::format("({:.2f}x)", bound)}},
                   translator.word("samples/s")) +
         longer_run_html(diagnosis, translator) +
         element("p.quiet", translator.say("Samples over the whole time of the run, start-up and validation included. "
                                           "The limit holds for this change alone; it is no promise."));
}

Html tiles_html(const std::vector<Tile>& tiles) {
  Html out;
  for (const Tile& tile : tiles) {
    out += element("div.tile", element("b", tile.value), element("span", tile.label),
                   tile.note.empty() ? Html() : element("small", tile.note));
  }
  return out.empty() ? out : element("div.tiles", out);
}

std::vector<Tile> key_figures(const Summary& s, const Translator& translator) {
  std::vector<Tile> tiles;
  if (s.throughput.training) {
    tiles.push_back({format_number(s.throughput.training->value), translator.say("training samples/s"),
                     rate_note(*s.throughput.training, translator)});
    if (const std::string total = format_number(s.throughput.total->value); total != tiles.front().value) {
      tiles.push_back(
          {total, translator.say("end-to-end samples/s"), translator.say("with validation and checkpoints")});
    }
  }
  if (s.whole_step_s && *s.whole_step_s > 0 && s.step_s[kInput]) {
    tiles.push_back({format_share(*s.step_s[kInput] / *s.whole_step_s), translator.say("of each step waits for input"),
                     translator.say("{} of a step of {}", step_words(s.step_s[kInput]), step_words(s.whole_step_s))});
  }
  if (s.gpu_busy) {
    tiles.push_back({format_share(*s.gpu_busy), translator.say("GPU busy"), translator.say("while it trained")});
  } else if (s.cpu_busy) {
    tiles.push_back(
        {format_share(*s.cpu_busy), translator.say("CPUs busy"), translator.say("of those allowed, while it trained")});
  }
  return tiles;
}

void add_arithmetic(const diagnose::Arithmetic& arithmetic, const Translator& translator, std::vector<Tile>& tiles) {
  const std::string per_s = format_flops(arithmetic.flops_per_s) + "/s";
  const std::string per_step = format_flops(arithmetic.flops_per_step);
  if (arithmetic.utilisation) {
    tiles.push_back({format_share(*arithmetic.utilisation), translator.say("of the data-sheet peak (MFU)"),
                     translator.say("{}, {} per step", per_s, per_step)});
  } else {
    tiles.push_back({per_s, translator.say("compute throughput"), translator.say("{} per step", per_step)});
  }
}

}  // namespace unidle::report
