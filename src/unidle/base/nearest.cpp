#include "unidle/base/nearest.h"

#include <algorithm>
#include <utility>

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

namespace {

constexpr std::size_t kLongest = 100;  // the distance takes the product of both lengths

/// The only name that begins with a word of some letters; empty if there is none, or several.
std::string_view begun_by(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::ptrdiff_t kFewest = 3;
  const auto begins = [&](const std::string& name) { return name.starts_with(word); };
  const bool only = word.size() <= kLongest &&
                    std::ranges::count_if(word, [](char c) { return c != '-'; }) >= kFewest &&
                    std::ranges::count_if(names, begins) == 1;
  return only ? std::string_view(*std::ranges::find_if(names, begins)) : std::string_view();
}

}  // namespace

std::vector<std::string> nearest(std::string_view word, std::vector<std::string> names, std::size_t count) {
  const std::string_view start = word.substr(0, kLongest);
  const auto key = [&](const std::string& name) {
    return std::pair(name.find(word) == std::string::npos, edit_distance(start, name));
  };
  std::ranges::stable_sort(names, {}, key);
  names.resize(std::min(count, names.size()));
  return names;
}

std::string nearest_or(std::string_view word, const std::vector<std::string>& names, std::string otherwise) {
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
  best = best.empty() ? begun_by(word, names) : best;
  return best.empty() ? otherwise : "did you mean " + std::string(best) + "?";
}

}  // namespace unidle
