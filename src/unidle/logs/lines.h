// Lines of a log of any size, in constant memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "unidle/logs/detail/read_ahead.h"
#include "unidle/logs/source.h"

namespace unidle::logs {

/// Not thread-safe. A line ends with \n, \r\n or a lone \r: progress bars draw over themselves with it.
class Lines {
 public:
  /// A line longer than `longest` bytes is given as its first `longest` bytes; its rest is passed over.
  explicit Lines(Source& source, std::size_t longest = std::size_t{64} << 10U);

  /// The next line without its end; false at the end. `line` is valid until the next call.
  bool next(std::string_view& line);

  /// Of the last line, counted from 1 by \n alone, as editors and grep -n count.
  std::uint64_t number() const { return number_; }
  /// The last line was longer than `longest`.
  bool cut() const { return cut_; }
  /// The last line had an end of its own; a file that is cut off, or still being written, ends without.
  bool ended() const { return ended_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  bool fill();
  void pass(const char* end);
  void pass_over_rest();
  const char* find(char sign, const char*& place) const;
  const char* end_of_line();

  detail::ReadAhead blocks_;
  std::size_t longest_;
  std::string_view rest_;          // read and not yet given
  const char* newline_ = nullptr;  // the first one of the rest, or its end; not known where it lies before the rest
  const char* return_ = nullptr;   // the same
  bool exhausted_ = false;
  bool after_return_ = false;  // the last line ended with \r, so that a \n behind it belongs to the same end
  bool starts_row_ = true;     // the next line is the first after a \n
  bool first_ = true;
  bool cut_ = false;
  bool ended_ = true;
  std::uint64_t number_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace unidle::logs
