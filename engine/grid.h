// Several values of one or more settings, one run after the other on the same data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/train/summary.h"

namespace unidle::engine {

/// One setting and the values to try.
struct GridAxis {
  std::string key;
  std::vector<std::string> values;

  /// "model.width=64,128". Throws kUsage for anything else.
  static GridAxis parse(const std::string& text);
};

/// A value for each key, in the order of the axes.
using GridPoint = std::vector<std::string>;

struct Grid {
  std::vector<GridAxis> axes;

  /// An axis a text. Throws kUsage for what is no axis and for a key that comes twice.
  static Grid parse(const std::vector<std::string>& texts);
  /// Throws kUsage where a setting of the command line has the key of an axis.
  void refuse_fixed(const std::vector<std::string>& overrides) const;
  /// Each value of each key with each of the others; the last key changes fastest.
  std::vector<GridPoint> points() const;
  /// "key=value" of each.
  std::vector<std::string> settings(const GridPoint& point) const;
};

struct GridRun {
  GridPoint point;
  std::optional<train::Summary> summary;  // of a run that came to an end
  std::string failure{};                  // of another
};
using GridRuns = std::vector<GridRun>;

/// One JSON document: {"grid": [keys], "runs": [{"settings": {key: value}, and what a run prints, or "error": text}]};
/// one line.
std::string to_json(const Grid& grid, const GridRuns& runs);
/// A table with a row a run that came to an end, then a line for each that failed; newline at the end.
std::string to_text(const Grid& grid, const GridRuns& runs);

}  // namespace unidle::engine
