#include "unidle/report/page/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/units.h"
#include "unidle/report/page/plot.h"

namespace unidle::report {

namespace {

bool is_positive(double rate) { return std::isfinite(rate) && rate > 0; }

Html pair_row(std::size_t number, double unchanged, double changed, double longest, const Translator& translator) {
  const Html way =
      element("i.way", place_of(std::min(unchanged, changed) / longest, std::max(unchanged, changed) / longest));
  const Html points =
      element("i.dot.run0", left_of(unchanged / longest)) + element("i.dot.run1", left_of(changed / longest));
  return element("li", element("span.name", translator.say("pair {}", number)),
                 element("span.track", attribute("aria-hidden", "true"), way, points),
                 element("span.value", fmt::format("{} \u2192 {} ", format_number(unchanged), format_number(changed)),
                         element("b", fmt::format("{:.2f}x", changed / unchanged))));
}

}  // namespace

Html pairs_html(const tune::Verification& found, const Translator& translator) {
  const std::size_t count = std::min(found.baseline.size(), found.winner.size());
  double longest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_positive(found.baseline[i]) || !is_positive(found.winner[i])) {
      return {};
    }
    longest = std::max({longest, found.baseline[i], found.winner[i]});
  }
  Html rows;
  for (std::size_t i = 0; i < count; ++i) {
    rows += pair_row(i + 1, found.baseline[i], found.winner[i], longest, translator);
  }
  return rows.empty()
             ? rows
             : legend({{"run0", translator.word("unchanged")}, {"run1", translator.word("changed")}}) +
                   element("ol.bars.pairs", rows) +
                   element("p.quiet", translator.say("Samples/s; the scale begins at 0. The runs of a pair follow one "
                                                     "another, so that a slower machine slows both."));
}

}  // namespace unidle::report
