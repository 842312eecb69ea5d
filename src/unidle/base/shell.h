// Words of a command line as a shell reads them back.
#pragma once

#include <string>
#include <vector>

namespace unidle {

/// The word itself when it is plain, otherwise in single quotes.
std::string shell_quoted(const std::string& word);
/// All of them, quoted where needed, with blanks between.
std::string shell_joined(const std::vector<std::string>& words);

}  // namespace unidle
