// Reads the lines of a log of any size in constant memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "unidle/logs/detail/read_ahead.h"
#include "unidle/logs/source.h"

namespace unidle::logs {

/// A line ends with \n, \r\n or a lone \r, with which progress bars overwrite themselves. Not thread-safe.
class Lines {
 public:
  /// A line longer than `longest` bytes is truncated.
  explicit Lines(Source& source, std::size_t longest = std::size_t{64} << 10U);

  /// Sets `line` to the next line without its end, valid until the next call; false at the end.
  bool next(std::string_view& line);

  /// Number of the last line from 1, counting only \n, as editors and grep -n do.
  std::uint64_t number() const { return number_; }
  /// Whether the last line had a line end; a truncated file, or one that is still being written, has none.
  bool ended() const { return ended_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Bytes up to the end of the last line.
  std::uint64_t position() const { return bytes_ - rest_.size(); }

 private:
  bool fill();
  void pass(const char* end);
  void pass_over_rest();
  const char* find(char sign, const char*& place) const;
  const char* end_of_line();

  detail::ReadAhead blocks_;
  std::size_t longest_;
  std::string_view rest_;          // read but not returned yet
  const char* newline_ = nullptr;  // first one in the rest, or its end; stale if before the rest
  const char* return_ = nullptr;   // the same for \r
  bool exhausted_ = false;
  bool after_return_ = false;  // the last line ended with \r; a \n that follows belongs to it
  bool starts_row_ = true;     // the next line is the first after \n
  bool first_ = true;
  bool cut_ = false;
  bool ended_ = true;
  std::uint64_t number_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace unidle::logs
