// Finds the name that a misspelt word was meant to be.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace unidle {

/// Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The `count` names that are nearest to `word`: those that contain it first, then by their distance.
std::vector<std::string> nearest(std::string_view word, std::vector<std::string> names, std::size_t count);

/// "did you mean NAME?" with the name that differs from `word` in the fewest letters, at most a third of them, or the
/// only one that begins with it; `otherwise` if there is none.
std::string nearest_or(std::string_view word, const std::vector<std::string>& names, std::string otherwise);

}  // namespace unidle
