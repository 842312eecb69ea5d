// Detects that a log contains several runs of a program: its first lines come again.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace unidle::logs::detail {

/// Compares lines with the first three of the log that are not empty; digits count as equal. Not thread-safe.
class NewStart {
 public:
  /// Whether the line completes a repetition.
  bool completes(std::string_view line);
  /// The line of the last call is progress: if it is one of the first three, they come with every epoch.
  void is_progress() { usable_ = usable_ && !of_first_; }

 private:
  static constexpr std::size_t kLines = 3;
  static constexpr std::size_t kLongest = 400;

  std::array<std::string, kLines> first_;
  std::size_t known_ = 0;    // lines in first_
  std::size_t matched_ = 0;  // lines of the current repetition
  bool usable_ = true;
  bool of_first_ = false;  // the last line is one of the first three
};

}  // namespace unidle::logs::detail
