// The last output of a program: why it failed, or the document at its end.
#pragma once

#include <string>
#include <string_view>

namespace unidle::experiment {

/// The last line of `text` that `accept` returns true for; empty when there is none.
std::string_view last_line(std::string_view text, bool (*accept)(std::string_view));

/// The last non-blank line of standard error, else of standard output, with secrets masked.
std::string last_line_of(std::string_view err, std::string_view out);

}  // namespace unidle::experiment
