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

 private:
  static constexpr std::size_t kLines = 3;
  static constexpr std::size_t kLongest = 400;

  std::array<std::string, kLines> first_;
  std::size_t known_ = 0;    // lines in first_
  std::size_t matched_ = 0;  // lines of the current repetition
  bool usable_ = true;
};

}  // namespace unidle::logs::detail
