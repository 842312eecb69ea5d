#include "unidle/knobs/place.h"

#include <algorithm>

#include "unidle/base/characters.h"

namespace unidle::knobs {

std::optional<Place> place_of(const std::string& where) {
  constexpr std::size_t kMostDigits = 9;
  const std::size_t colon = where.rfind(':');
  const std::string line = colon == std::string::npos ? "" : where.substr(colon + 1);
  if (line.empty() || line.size() > kMostDigits || !std::all_of(line.begin(), line.end(), is_digit)) {
    return std::nullopt;
  }
  return Place{where.substr(0, colon), std::stoi(line)};
}

}  // namespace unidle::knobs
