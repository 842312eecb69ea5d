// Splits keys into words, so that num_workers, NUM_WORKERS, numWorkers and num-workers are equal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unidle::knobs::detail {

using Words = std::vector<std::string>;

/// The words of a key in lower case, split at characters other than letters and digits and before capitals; plurals and
/// common abbreviations are normalised ("bs" is batch size, "learning rate" is lr).
Words words_of(std::string_view key);

/// The blank-separated words of a list, normalised.
Words split_words(std::string_view list);

/// The blank-separated names of a list, unchanged.
Words split_list(std::string_view list);

bool contains(const Words& words, std::string_view word);
bool any_in(const Words& words, const Words& wanted);

/// The keys of "a.b[0].c", without indices.
std::vector<std::string> keys_of(std::string_view path);

}  // namespace unidle::knobs::detail
