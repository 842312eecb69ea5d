// Several runs of one setting: their mean and their spread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "unidle/experiment/equal_samples.h"

namespace unidle::experiment {

/// Standard deviations between runs of one setting: zero for a program that repeats itself, and when fewer than two
/// runs have a value.
struct Spread {
  double loss = 0;
  std::map<std::string, double> metrics;

  /// Standard errors of the difference of two means, over `before` and `after` runs.
  Spread of_difference(std::size_t before, std::size_t after) const;
};
Spread spread_of(const std::vector<Learned>& runs);

/// True when the runs reached the same losses and metrics, except for rounding.
bool agree(const std::vector<Learned>& runs);

/// Mean losses and metrics of all runs. There is a loss only when all runs have one; a metric of the first run is the
/// mean of the runs that report it, and other metrics are left out. REQUIRES: not empty.
Learned averaged(const std::vector<Learned>& runs);

}  // namespace unidle::experiment
