// Figures of a run that stand beside those of the other: each is a row for people and a key in JSON.
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
  bool changes = false;     // the row tells by how much it changed
  bool when_rough = false;  // the row is only there where others disturbed a run
};

/// In the order of their rows. A figure that neither run has is no row.
std::span<const Figure> figures();

}  // namespace unidle::report
