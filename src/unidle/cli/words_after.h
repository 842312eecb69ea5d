// Positional arguments on either side of "--".
#pragma once

#include <string>
#include <vector>

namespace unidle::cli {

/// For a command with one optional positional argument, `first`, and a command line after "--", `words`. CLI11 does not
/// say on which side a word was: if `first` was after "--", moves it to the front of `words`.
void move_first_word(std::string& first, std::vector<std::string>& words);

}  // namespace unidle::cli
