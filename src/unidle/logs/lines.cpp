#include "unidle/logs/lines.h"

#include <algorithm>
#include <cstring>

namespace unidle::logs {

namespace {
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
}  // namespace

Lines::Lines(Source& source, std::size_t longest) : blocks_(source, longest), longest_(longest) {}

/// Reads the next block; false at the end.
bool Lines::fill() {
  const std::size_t left = rest_.size();
  if (exhausted_ || !blocks_.next(rest_)) {
    exhausted_ = true;
    return false;
  }
  bytes_ += rest_.size() - left;
  newline_ = nullptr;
  return_ = nullptr;
  return true;
}

/// Position of the first `sign` in the rest, or the end of the rest; `place` caches it for later lines.
const char* Lines::find(char sign, const char*& place) const {
  if (place == nullptr || place < rest_.data()) {
    const void* found = rest_.empty() ? nullptr : std::memchr(rest_.data(), sign, rest_.size());
    place = found == nullptr ? rest_.data() + rest_.size() : static_cast<const char*>(found);
  }
  return place;
}

/// The first \n or \r in the rest; nullptr when there is none.
const char* Lines::end_of_line() {
  const char* const end = std::min(find('\n', newline_), find('\r', return_));
  return end < rest_.data() + rest_.size() ? end : nullptr;
}

/// Consumes the end of a line.
void Lines::pass(const char* end) {
  rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()) + 1);
  after_return_ = *end == '\r';
  starts_row_ = *end == '\n';
}

void Lines::pass_over_rest() {
  ended_ = false;
  do {
    if (const char* const end = end_of_line()) {
      pass(end);
      return;
    }
    rest_ = {};
  } while (fill());
}

bool Lines::next(std::string_view& line) {
  if (cut_) {
    pass_over_rest();
    cut_ = false;
  }
  for (;;) {
    if (after_return_ && !rest_.empty()) {
      after_return_ = false;
      if (rest_.front() == '\n') {
        rest_.remove_prefix(1);
        starts_row_ = true;
        continue;
      }
    }
    const char* const end = end_of_line();
    const std::size_t size = end == nullptr ? rest_.size() : static_cast<std::size_t>(end - rest_.data());
    const bool whole = end != nullptr && size <= longest_;
    if (!whole && size <= longest_ && fill()) {
      continue;  // the end may be in the new block
    }
    if (end == nullptr && size == 0) {
      return false;
    }
    number_ += starts_row_ ? 1 : 0;
    starts_row_ = false;
    if (first_) {
      first_ = false;
      if (size >= kByteOrderMark.size() && rest_.starts_with(kByteOrderMark)) {
        rest_.remove_prefix(kByteOrderMark.size());
        --number_;
        starts_row_ = true;
        continue;
      }
    }
    line = rest_.substr(0, std::min(size, longest_));
    const std::size_t hole = line.empty() || line.front() != '\0' ? 0 : line.find_first_not_of('\0');
    cut_ = size > longest_;
    ended_ = whole;
    if (whole) {
      pass(end);
    } else {
      rest_.remove_prefix(line.size());
    }
    line.remove_prefix(std::min(hole, line.size()));
    return true;
  }
}

}  // namespace unidle::logs
