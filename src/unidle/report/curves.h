// From a record to the lines of the plots, with as many points as a picture can show.
#pragma once

#include <string>
#include <vector>

#include "unidle/account/account.h"
#include "unidle/language/translator.h"
#include "unidle/report/chart.h"

namespace unidle::report {

/// A run with its account and its colour on the page.
struct Shown {
  const account::RunData* run;
  account::Account account;
  std::string css;

  /// Seconds since the start of the run.
  double since_start(std::int64_t t_ns) const { return static_cast<double>(t_ns - account.timeline.begin_ns) * 1e-9; }
};

/// Means over at most `most` equal intervals of x. Lines with fewer points stay unchanged. REQUIRES: sorted by x.
Line thinned(const Line& points, std::size_t most);

/// Every plot for which the runs have data, in the order of the page. `length_s`: the longest run's wall time.
std::vector<Chart> charts(const std::vector<Shown>& runs, double length_s, const Translator& translator);

}  // namespace unidle::report
