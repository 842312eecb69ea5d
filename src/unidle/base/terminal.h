// What the program's own terminal can do.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace unidle {

/// True when the stream is a terminal and NO_COLOR is unset (https://no-color.org).
bool use_colour(std::FILE* stream);
/// Columns of the stream's terminal; $COLUMNS, then 80, where it is none.
int terminal_width(std::FILE* stream);

/// Wraps words at `width` columns; every line after the first is indented by `indent`. UTF-8 aware by code point.
std::string wrap(std::string_view text, int width, int indent = 0);

/// A one-line progress display on stderr; silent when stderr is no terminal or the work ends within two seconds.
/// Not thread-safe.
class Progress {
 public:
  Progress(std::string label, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void update(std::uint64_t done, std::string_view note = {});

 private:
  std::string label_;
  std::uint64_t total_;
  std::int64_t start_ns_;
  std::int64_t drawn_ns_ = 0;
  bool terminal_;
};

}  // namespace unidle
