// Keys as words, so that num_workers, NUM_WORKERS, numWorkers and num-workers are one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unidle::knobs::detail {

using Words = std::vector<std::string>;

/// Lower-case words of a key, split at what is no letter or digit and where capitals begin; plurals and common
/// abbreviations are brought to one form ("bs" is batch size, "learning rate" is lr).
Words words_of(std::string_view key);

/// The words of a list between blanks, in the same form.
Words split_words(std::string_view list);

/// Names between blanks, as they are.
Words split_list(std::string_view list);

bool contains(const Words& words, std::string_view word);
bool any_in(const Words& words, const Words& wanted);

/// The keys of "a.b[0].c", without indices.
std::vector<std::string> keys_of(std::string_view path);

}  // namespace unidle::knobs::detail
