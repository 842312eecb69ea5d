#include "unidle/logs/detail/new_start.h"

#include <algorithm>

#include "unidle/base/characters.h"

namespace unidle::logs::detail {

namespace {

bool is_alike(std::string_view one, std::string_view other) {
  return one.size() == other.size() && std::equal(one.begin(), one.end(), other.begin(), [](char a, char b) {
           return a == b || (is_digit(a) && is_digit(b));
         });
}

}  // namespace

bool NewStart::completes(std::string_view line) {
  line = line.substr(0, kLongest);
  of_first_ = known_ < kLines;
  if (known_ < kLines) {
    if (line.empty()) {
      return false;
    }
    // A line that is printed again and again says nothing of a start.
    const auto end = first_.begin() + static_cast<std::ptrdiff_t>(known_);
    usable_ = usable_ && std::none_of(first_.begin(), end, [&](const std::string& one) { return is_alike(one, line); });
    first_[known_++] = line;
    return false;
  }
  if (!usable_ || line.empty()) {
    return false;
  }
  if (!is_alike(first_[matched_], line)) {
    matched_ = is_alike(first_[0], line) ? 1 : 0;
    return false;
  }
  matched_ = (matched_ + 1) % kLines;
  return matched_ == 0;
}

}  // namespace unidle::logs::detail
