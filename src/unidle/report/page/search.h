// What a search of `unidle optimize` found: what each change brought, and every trial.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/account/account.h"
#include "unidle/base/stats.h"
#include "unidle/language/translator.h"
#include "unidle/report/page/html.h"
#include "unidle/tune/output/recorded.h"

namespace unidle::report {

/// True for the record of a search: it holds trials, changes or a verification.
bool is_search(const account::RunData& run);

/// One step from the baseline to the winner.
struct Gain {
  std::string what;     // "loader.workers=4": the settings that it sets
  std::string without;  // the settings that it leaves out again
  double before = 0;    // samples/s
  double after = 0;
  double ratio = 1;
  std::optional<Interval> interval;  // of the ratio, when it was repeated in enough pairs
};

/// The kept trials in their order, each against the best before it.
std::vector<Gain> gains(const std::vector<tune::LoggedTrial>& trials);

/// The headline: the conclusion up to its first reason.
std::string search_answer(const account::RunData& run, const Translator& translator);

/// What follows the headline: the rest of the conclusion, the change as a diff, and either the proven gain as bars or
/// the pairs that proved none as points.
Html search_opening(const account::RunData& run, const Translator& translator);

/// The sections: what each change brought, all trials, the verification.
Html search_sections(const account::RunData& run, const Translator& translator);

}  // namespace unidle::report
