// The lengths of a run's steps: what a mean step consists of, and how far single steps are from it.
#pragma once

#include <vector>

#include "unidle/language/translator.h"
#include "unidle/report/comparison.h"
#include "unidle/report/page/html.h"
#include "unidle/report/page/shown.h"

namespace unidle::report {

/// Step times in equal intervals from 0 to `to_s`; longer ones are counted apart.
struct StepHistogram {
  double to_s = 0;
  std::vector<double> counts;
  std::size_t longer = 0;
  double median_s = 0, p95_s = 0, p99_s = 0, longest_s = 0;
  double slowest_share = 0;  // of the time of all counted steps, that the slowest hundredth of them took
};

/// Of the counted steps. Nothing for fewer than eight.
std::optional<StepHistogram> step_histogram(const account::Account& account);

/// The histogram as a figure of half the width; nothing when there is none.
Html step_times(const Shown& shown, const Translator& translator);

/// A mean step of each run as a bar on one scale, with its parts, and the same as a table.
Html mean_steps(const std::vector<Summary>& runs, const Translator& translator);

}  // namespace unidle::report
