#include "unidle/logs/lines.h"

#include <algorithm>
#include <cstring>

namespace unidle::logs {

namespace {
constexpr std::size_t kBuffer = std::size_t{1} << 20U;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
}  // namespace

Lines::Lines(Source& source, std::size_t longest)
    : source_(source), longest_(longest), buffer_(std::max(kBuffer, 2 * longest)) {}

/// Moves what is left to the front and reads behind it; false when nothing was read.
bool Lines::fill() {
  if (exhausted_) {
    return false;
  }
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  newline_known_ = false;
  const std::size_t got = source_.read({buffer_.data() + end_, buffer_.size() - end_});
  exhausted_ = got == 0;
  end_ += got;
  bytes_ += got;
  return got > 0;
}

/// The first \n or \r at or behind begin_; nullptr when the buffer holds none.
const char* Lines::end_of_line() {
  const char* const begin = buffer_.data() + begin_;
  if (!newline_known_ || newline_ < begin_) {
    const void* found = begin_ < end_ ? std::memchr(begin, '\n', end_ - begin_) : nullptr;
    newline_ = found == nullptr ? end_ : static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data());
    newline_known_ = true;
  }
  if (newline_ > begin_) {
    if (const void* found = std::memchr(begin, '\r', newline_ - begin_)) {
      return static_cast<const char*>(found);
    }
  }
  return newline_ < end_ ? buffer_.data() + newline_ : nullptr;
}

void Lines::pass_over_rest() {
  cut_ = true;
  ended_ = false;
  for (;;) {
    const char* const end = end_of_line();
    if (end != nullptr) {
      begin_ = static_cast<std::size_t>(end - buffer_.data()) + 1;
      after_return_ = *end == '\r';
      starts_row_ = *end == '\n';
      return;
    }
    begin_ = end_;
    if (!fill()) {
      return;
    }
  }
}

bool Lines::next(std::string_view& line) {
  if (cut_) {
    pass_over_rest();
    cut_ = false;
  }
  for (;;) {
    if (after_return_ && begin_ < end_) {
      after_return_ = false;
      if (buffer_[begin_] == '\n') {
        ++begin_;
        starts_row_ = true;
        continue;
      }
    }
    const char* const end = end_of_line();
    const std::size_t size = (end == nullptr ? end_ : static_cast<std::size_t>(end - buffer_.data())) - begin_;
    const bool whole = end != nullptr && size <= longest_;
    if (!whole && size <= longest_ && fill()) {
      continue;  // the end may lie in what was just read
    }
    if (end == nullptr && size == 0) {
      return false;
    }
    number_ += starts_row_ ? 1 : 0;
    starts_row_ = false;
    if (first_) {
      first_ = false;
      if (size >= kByteOrderMark.size() && std::string_view(buffer_.data() + begin_, 3) == kByteOrderMark) {
        begin_ += kByteOrderMark.size();
        --number_;
        starts_row_ = true;
        continue;
      }
    }
    line = {buffer_.data() + begin_, std::min(size, longest_)};
    cut_ = size > longest_;
    ended_ = whole;
    begin_ += line.size();
    if (whole) {
      ++begin_;
      after_return_ = *end == '\r';
      starts_row_ = *end == '\n';
    }
    return true;
  }
}

}  // namespace unidle::logs
