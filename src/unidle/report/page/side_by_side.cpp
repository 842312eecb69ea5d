#include "unidle/report/page/side_by_side.h"

#include <fmt/format.h>

#include "unidle/base/units.h"
#include "unidle/report/comparison_words.h"
#include "unidle/report/page/opening.h"
#include "unidle/report/scaling.h"

namespace unidle::report {

namespace {

std::optional<Interval> interval_of(const std::optional<Rate>& rate) { return rate ? rate->interval : std::nullopt; }

Html words_table(const std::string& caption, const std::vector<WordRow>& rows, const std::vector<std::string>& header) {
  std::vector<std::vector<std::string>> cells;
  for (const WordRow& row : rows) {
    cells.push_back({row.label});
    cells.back().insert(cells.back().end(), row.cells.begin(), row.cells.end());
  }
  return table(caption, header, cells);
}

Html sentences(const std::vector<std::string>& lines, std::string_view name) {
  Html out;
  for (const std::string& line : lines) {
    out += element(name, line);
  }
  return out;
}

std::string before_and_after(const std::optional<double>& a, const std::optional<double>& b) {
  return fmt::format("{} \u2192 {}", a ? format_share(*a) : "-", b ? format_share(*b) : "-");
}

std::optional<double> input_share(const Summary& s) {
  const auto& input = s.step_s[kInput];
  return input && s.whole_step_s && *s.whole_step_s > 0 ? std::optional(*input / *s.whole_step_s) : std::nullopt;
}

std::vector<Tile> gain_tiles(const Comparison& c, const Translator& translator) {
  std::vector<Tile> tiles;
  const auto add_ratio = [&](const std::optional<experiment::Ratio>& ratio, const std::string& label) {
    if (ratio) {
      tiles.push_back({fmt::format("{:.2f}x", ratio->value), label,
                       ratio->interval ? translator.say("95 % interval {:.2f}x to {:.2f}x", ratio->interval->low,
                                                        ratio->interval->high)
                                       : translator.say("too few steps for an interval")});
    }
  };
  if (c.by_whole()) {
    add_ratio(c.total_ratio, translator.say("end-to-end samples/s"));
  }
  add_ratio(c.training_ratio, translator.say("training samples/s"));
  if (!c.by_whole()) {
    add_ratio(c.total_ratio, translator.say("end-to-end samples/s"));
  }
  if (input_share(c.a) || input_share(c.b)) {
    tiles.push_back(
        {before_and_after(input_share(c.a), input_share(c.b)), translator.say("of a step waits for input")});
  }
  if (c.a.gpu_busy || c.b.gpu_busy) {
    tiles.push_back({before_and_after(c.a.gpu_busy, c.b.gpu_busy), translator.say("GPU busy")});
  } else if (c.a.cpu_busy || c.b.cpu_busy) {
    tiles.push_back({before_and_after(c.a.cpu_busy, c.b.cpu_busy), translator.say("CPUs busy"),
                     translator.say("of those allowed")});
  }
  return tiles;
}

}  // namespace

Html comparison_opening(const Comparison& c, const Translator& translator) {
  const auto bar = [&](const Summary& s, const char* css) {
    const auto& rate = c.by_whole() ? s.throughput.total : s.throughput.training;
    return RateBar{s.name, rate ? rate->value : 0, interval_of(rate), css, ""};
  };
  return rate_bars({bar(c.a, "run0"), bar(c.b, "run1")}, translator.word("samples/s")) +
         tiles_html(gain_tiles(c, translator));
}

Html comparison_tables(const Comparison& c, const Translator& translator) {
  const auto titled = [&](std::string_view title, const std::vector<WordRow>& rows,
                          const std::vector<std::string>& header) {
    const std::string words = translator.word(title);
    return rows.empty() ? Html() : element("h3", words) + words_table(words, rows, header);
  };
  const std::vector<std::string> with_change = {"", c.a.name, c.b.name, translator.word("Change")};
  Html out = sentences(c.regressions, "p.regression");
  out += words_table(translator.word("Throughput"), throughput_rows(c, translator),
                     {"", c.a.name, c.b.name, translator.word("Ratio")});
  out += titled("Where a step's time went", step_rows(c, translator), with_change);
  out += titled("Time of a rank for each sample", scaling_rows(c, translator), with_change);
  out += titled("Where the run's time went", phase_rows(c, translator), with_change);
  out += titled("Learning at equal samples", learning_rows(c, translator),
                {"", c.a.name, c.b.name, translator.word("Difference")});
  out += titled("Settings that differ", setting_rows(c, translator), {translator.word("Knob"), c.a.name, c.b.name});
  return element("div.compare", out) + sentences(c.notes, "p.quiet");
}

}  // namespace unidle::report
