// Figures that are shown for two runs side by side: each has a row for people and a key in JSON.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "unidle/report/comparison.h"

namespace unidle::report {

struct Figure {
  std::string_view key;    // in JSON
  std::string_view label;  // of the row; empty: only in JSON
  std::optional<double> Summary::*value;
  std::string (*words)(double value);
  bool changes = false;     // the row shows the relative change
  bool when_rough = false;  // the row is shown only when other processes disturbed a run
};

/// In the order of their rows. A figure that neither run has gets no row.
std::span<const Figure> figures();

}  // namespace unidle::report
