// Tables of metrics, as Keras' CSVLogger, Lightning's CSVLogger and Ultralytics write them: a header and a row per
// epoch or step.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unidle::logs::detail {

/// Turns rows into words that the other readers know: "3,0.5,0.4" into "epoch=3 loss=0.5 val_loss=0.4". Not
/// thread-safe.
class MetricTable {
 public:
  /// `line` as it is if it belongs to no table; otherwise valid until the next call. The header is the first line of
  /// the file that is not empty.
  std::string_view words(std::string_view line);

 private:
  void read_header(std::string_view line);

  bool begun_ = false;
  char separator_ = ',';
  std::vector<std::string> names_;  // by column; empty: not used. None: no table
  std::string text_;
};

}  // namespace unidle::logs::detail
