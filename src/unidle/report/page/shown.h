// A run as the page shows it.
#pragma once

#include <string>
#include <vector>

#include "unidle/account/account.h"

namespace unidle::report {

/// A run with its account and its colour on the page.
struct Shown {
  const account::RunData* run;
  account::Account account;
  std::string css;

  /// Seconds since the start of the run.
  double since_start(std::int64_t t_ns) const { return static_cast<double>(t_ns - account.timeline.begin_ns) * 1e-9; }
};

/// Seconds, minutes or hours, whichever suits a run of that length: the unit's name and its length in seconds.
struct TimeUnit {
  const char* name;
  double seconds;
};
TimeUnit time_unit(double length_s);

}  // namespace unidle::report
