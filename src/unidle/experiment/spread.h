// Several runs of one setting: their mean, and how far they lie apart.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "unidle/experiment/equal_samples.h"

namespace unidle::experiment {

/// How far runs of one setting lie apart by themselves, as standard deviations: nothing of a program that repeats
/// itself, and where fewer than two runs tell.
struct Spread {
  double loss = 0;
  std::map<std::string, double> metrics;

  /// Standard errors of the difference of two means, of so many runs each.
  Spread of_difference(std::size_t before, std::size_t after) const;
};
Spread spread_of(const std::vector<Learned>& runs);

/// The runs came to the same losses and metrics, but for rounding.
bool agree(const std::vector<Learned>& runs);

/// Losses and metrics of all runs. Where one has no loss, there is none; a metric is that of the runs that report it.
/// REQUIRES: not empty.
Learned averaged(const std::vector<Learned>& runs);

}  // namespace unidle::experiment
