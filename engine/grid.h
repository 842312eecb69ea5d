// Runs several values of one or more settings, one after the other on the same data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/language/language.h"
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

  /// One axis per text. Throws kUsage for an invalid axis and for a duplicate key.
  static Grid parse(const std::vector<std::string>& texts);
  /// Throws kUsage when a setting on the command line has the key of an axis.
  void refuse_fixed(const std::vector<std::string>& overrides) const;
  /// The product of all axes; the last key changes fastest.
  std::vector<GridPoint> points() const;
  /// "key=value" for each key.
  std::vector<std::string> settings(const GridPoint& point) const;
};

struct GridRun {
  GridPoint point;
  std::optional<train::Summary> summary;  // of a run that finished
  std::string failure{};                  // of a run that failed
};
using GridRuns = std::vector<GridRun>;

/// One JSON document on one line: {"grid": [keys], "runs": [{"settings": {key: value}, and a run's output, or "error":
/// text}]}.
std::string to_json(const Grid& grid, const GridRuns& runs);
/// A table with a row per finished run, then a line for each failed one; ends with a newline.
std::string to_text(const Grid& grid, const GridRuns& runs, Language language = Language::kEnglish);

}  // namespace unidle::engine
