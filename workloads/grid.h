// Several values of one setting, one run after the other on the same data.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "unidle/train/summary.h"

namespace unidle::workloads {

struct Grid {
  std::string key;
  std::vector<std::string> values;

  /// "model.width=64,128". Throws kUsage for anything else.
  static Grid parse(const std::string& text);
};

using GridRuns = std::vector<std::pair<std::string, train::Summary>>;  // value and what came of it

/// One JSON document: {"grid": key, "runs": [{"value", and what a run prints}]}; one line.
std::string to_json(const Grid& grid, const GridRuns& runs);
/// A table with a row a run; newline at the end.
std::string to_text(const Grid& grid, const GridRuns& runs);

}  // namespace unidle::workloads
