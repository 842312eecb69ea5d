// The lines in which two texts differ.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::knobs {

struct ChangedLines {
  int line = 0;  // of the first one, from 1
  std::vector<std::string> before;
  std::vector<std::string> after;
};

/// One range from the first to the last line that differs, without line ends; empty when the texts are equal.
ChangedLines changed_lines(std::string_view before, std::string_view after);

/// The text with the change; nothing when it has other lines there. All other bytes stay as they are.
std::optional<std::string> with_lines(std::string_view text, const ChangedLines& change);

/// The changes of a unified diff of one file, with their context.
std::vector<ChangedLines> changes_of_diff(std::string_view diff);

/// Line `line` of the text, counted from 1, without its end; empty when there is none.
std::string_view line_of(std::string_view text, int line);

/// The line as it is shown. Of a long one, only the part around its difference from `other`: a file of one line may
/// hold anything, also what should not be shown.
std::string excerpt(std::string_view line, std::string_view other);

}  // namespace unidle::knobs
