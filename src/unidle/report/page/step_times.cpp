#include "unidle/report/page/step_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "unidle/base/stats.h"
#include "unidle/base/units.h"
#include "unidle/report/comparison_words.h"
#include "unidle/report/page/activity.h"
#include "unidle/report/page/plot.h"

namespace unidle::report {

namespace {

constexpr std::size_t kFewestSteps = 8;
constexpr std::size_t kMostColumns = 60;
constexpr double kRoom = 1.1;    // beyond the 99th percentile
constexpr double kAbove = 1.35;  // the words of the marks stand above the columns

std::vector<double> counted_steps(const account::Account& account) {
  std::vector<double> seconds;
  for (std::size_t i = account.timeline.first_counted; i < account.timeline.end_counted; ++i) {
    if (i < account.periods.size() && account.periods[i].step_s > 0) {
      seconds.push_back(account.periods[i].step_s);
    }
  }
  std::ranges::sort(seconds);
  return seconds;
}

/// "ms" or "s" for the axis of step times up to `to_s`.
TimeUnit step_unit(double to_s) { return to_s < 2 ? TimeUnit{"ms", 1e-3} : TimeUnit{"s", 1}; }

std::string tail_words(const StepHistogram& histogram, const Translator& translator) {
  return translator.say("The longest step took {}; the slowest 1 % of the steps take {} of the time.",
                        format_seconds(histogram.longest_s), format_share(histogram.slowest_share));
}

/// The columns; a last one, in another colour, holds the steps beyond the axis.
std::vector<Layer> histogram_layers(const StepHistogram& histogram, const Translator& translator) {
  std::vector<Layer> layers = {{translator.word("steps"), "compute", histogram.counts}};
  if (histogram.longer > 0) {
    layers.front().values.push_back(0);
    layers.push_back({translator.say("longer, up to {}", format_seconds(histogram.longest_s)), "input",
                      std::vector<double>(histogram.counts.size(), 0)});
    layers.back().values.push_back(static_cast<double>(histogram.longer));
  }
  return layers;
}

/// The parts of a mean step from left to right, with their colours.
Html parts_bar(const Summary& summary, double longest_s) {
  Html parts;
  for (const Look& look : looks()) {
    if (look.activity < kPartCount && summary.step_s[look.activity]) {
      parts += element(fmt::format("i.{}", look.css), width_of(*summary.step_s[look.activity] / longest_s));
    }
  }
  return element("span.track.parts", attribute("aria-hidden", "true"), parts);
}

Html parts_legend(const std::vector<Summary>& runs, const Translator& translator) {
  std::vector<LegendEntry> entries;
  for (const Look& look : looks()) {
    if (look.activity < kPartCount && std::ranges::any_of(runs, [&](const Summary& summary) {
          return summary.step_s[look.activity].value_or(0) > 0;
        })) {
      entries.push_back({look.css, translator.word(look.label)});
    }
  }
  return legend(entries);
}

Html parts_table(const Summary& s, const Translator& translator) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t part = 0; part < kPartCount; ++part) {
    if (s.step_s[part]) {
      rows.push_back({part_label(static_cast<Part>(part), translator), step_words(s.step_s[part]),
                      *s.whole_step_s > 0 ? format_share(*s.step_s[part] / *s.whole_step_s) : "-"});
    }
  }
  rows.push_back({translator.say("whole step"), step_words(s.whole_step_s), ""});
  return table(translator.say("Mean time of a step by part"),
               {translator.word("Part"), translator.word("Mean"), translator.word("Share")}, rows);
}

}  // namespace

std::optional<StepHistogram> step_histogram(const account::Account& account) {
  const std::vector<double> seconds = counted_steps(account);
  if (seconds.size() < kFewestSteps) {
    return std::nullopt;
  }
  StepHistogram out;
  out.median_s = quantile(seconds, 0.5);
  out.p95_s = quantile(seconds, 0.95);
  out.p99_s = quantile(seconds, 0.99);
  out.longest_s = seconds.back();
  out.to_s = std::min(out.p99_s * kRoom, out.longest_s * 1.0001);
  const auto columns = static_cast<std::size_t>(2 * std::sqrt(static_cast<double>(seconds.size()))) + 6;
  out.counts.resize(std::min(kMostColumns, columns));
  for (const double step : seconds) {
    const auto column = static_cast<std::size_t>(step / out.to_s * static_cast<double>(out.counts.size()));
    step < out.to_s&& column < out.counts.size() ? ++out.counts[column] : static_cast<double>(++out.longer);
  }
  const std::size_t slowest = std::max<std::size_t>(1, seconds.size() / 100);
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  out.slowest_share = std::accumulate(seconds.end() - static_cast<std::ptrdiff_t>(slowest), seconds.end(), 0.0) / all;
  return out;
}

Html step_times(const Shown& shown, const Translator& translator) {
  const auto histogram = step_histogram(shown.account);
  if (!histogram) {
    return {};
  }
  const TimeUnit unit = step_unit(histogram->to_s);
  Panel panel;
  panel.id = "steptimes";
  panel.title = translator.say("How long the steps take");
  panel.unit = translator.word("steps");
  panel.description = panel.title;
  panel.low = 0;
  panel.layers = histogram_layers(*histogram, translator);
  panel.high = kAbove * std::max(std::ranges::max(histogram->counts), static_cast<double>(histogram->longer));
  panel.marks = {{histogram->median_s / unit.seconds, translator.say("median {}", format_seconds(histogram->median_s))},
                 {histogram->p95_s / unit.seconds, translator.say("95 % below {}", format_seconds(histogram->p95_s))}};
  const double columns = static_cast<double>(panel.layers.front().values.size());
  const double to_s = histogram->to_s * columns / static_cast<double>(histogram->counts.size());
  const Axis axis{0, to_s / unit.seconds, translator.say("time of a step ({})", unit.name), unit.name};
  return plot(panel.title, tail_words(*histogram, translator), {panel}, axis, Width::kHalf);
}

Html mean_steps(const std::vector<Summary>& runs, const Translator& translator) {
  double longest = 0;
  for (const Summary& summary : runs) {
    longest = std::max(longest, summary.whole_step_s.value_or(0));
  }
  if (!(longest > 0)) {
    return {};
  }
  Html bars;
  for (const Summary& summary : runs) {
    if (summary.whole_step_s) {
      bars += element("li", element("span.name", runs.size() > 1 ? summary.name : translator.say("a mean step")),
                      parts_bar(summary, longest), element("span.value", step_words(summary.whole_step_s)));
    }
  }
  const Html details = runs.size() == 1 ? parts_table(runs.front(), translator) : Html();
  return element("figure.half", element("figcaption", translator.say("What a mean step consists of")),
                 parts_legend(runs, translator), element("ol.bars", bars), details);
}

}  // namespace unidle::report
