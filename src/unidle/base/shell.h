// Quotes words of a command line so that a shell reads them back.
#pragma once

#include <string>
#include <vector>

namespace unidle {

/// The word itself if it needs no quoting, otherwise in single quotes.
std::string shell_quoted(const std::string& word);
/// All words, quoted if needed, separated by blanks.
std::string shell_joined(const std::vector<std::string>& words);

}  // namespace unidle
