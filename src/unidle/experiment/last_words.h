// What a program said last: the reason why it failed, or the document at its end.
#pragma once

#include <string>
#include <string_view>

namespace unidle::experiment {

/// The last line of `text` that `accept` takes; empty when there is none.
std::string_view last_line(std::string_view text, bool (*accept)(std::string_view));

/// The last line with text, of standard error or else of standard output. Secrets in it are masked.
std::string last_words(std::string_view err, std::string_view out);

}  // namespace unidle::experiment
