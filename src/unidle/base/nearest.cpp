#include "unidle/base/nearest.h"

#include <algorithm>

namespace unidle {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string nearest_or(std::string_view word, const std::vector<std::string>& names, std::string otherwise) {
  constexpr std::size_t kLongest = 100;  // the distance takes the product of both lengths
  std::string_view best;
  std::size_t least = std::min(word.size(), kLongest) / 3 + 1;
  for (const std::string& name : names) {
    if (word.size() > kLongest || name.size() > kLongest) {
      continue;
    }
    if (const std::size_t distance = edit_distance(word, name); distance < least) {
      least = distance;
      best = name;
    }
  }
  return best.empty() ? otherwise : "did you mean " + std::string(best) + "?";
}

}  // namespace unidle
