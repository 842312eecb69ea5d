#include "unidle/logs/detail/new_start.h"

#include <algorithm>

#include "unidle/logs/detail/numbers.h"

namespace unidle::logs::detail {

bool NewStart::completes(std::string_view line) {
  line = line.substr(0, kLongest);
  of_first_ = known_ < kLines;
  if (known_ < kLines) {
    if (line.empty()) {
      return false;
    }
    // A line that is printed again and again says nothing of a start.
    const auto end = first_.begin() + static_cast<std::ptrdiff_t>(known_);
    usable_ = usable_ && std::none_of(first_.begin(), end,
                                      [&](const std::string& one) { return differ_in_digits_only(one, line); });
    first_[known_++] = line;
    return false;
  }
  if (!usable_ || line.empty()) {
    return false;
  }
  if (!differ_in_digits_only(first_[matched_], line)) {
    matched_ = differ_in_digits_only(first_[0], line) ? 1 : 0;
    return false;
  }
  matched_ = (matched_ + 1) % kLines;
  return matched_ == 0;
}

}  // namespace unidle::logs::detail
