// What the program's own terminal can do.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace unidle {

/// True when the stream is a terminal and NO_COLOR is unset (https://no-color.org).
bool use_colour(std::FILE* stream);
/// Columns of the stream's terminal; $COLUMNS, then 80, where it is none.
int terminal_width(std::FILE* stream);

/// `text` in the style of these SGR parameters ("31;1"), for write_to alone: the mark that says so holds a number that
/// is drawn anew in every process, so that no text of others can hold it.
std::string painted(std::string_view text, std::string_view parameters);

/// The one way out for text: what may hold text of others reaches a terminal only as printable() leaves it, with the
/// styles of painted(). The same goes for files and pipes, which terminals show later. Throws kIo when the stream
/// refuses or was closed when we were started; that stderr does is nothing that could be told anybody, and a reader
/// that has gone away (EPIPE) wants no more.
void write_to(std::FILE* stream, std::string_view text);
/// What was written to standard output is out when this returns; the end of every command. False when its reader has
/// gone away. Throws as write_to does: whatever was cut off must not be taken for whole.
bool flush_output();
template <typename... Args>
void print_to(std::FILE* stream, fmt::format_string<Args...> format, Args&&... args) {
  write_to(stream, fmt::format(format, std::forward<Args>(args)...));
}
/// A line of our own on stderr, "unidle: ...", on one line whatever it quotes; never throws.
void say_error(std::string_view program, std::string_view text) noexcept;

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
  /// Whether update() would draw now: for callers whose note costs something.
  bool due() const;

 private:
  std::string label_;
  std::uint64_t total_;
  std::int64_t start_ns_;
  std::int64_t drawn_ns_ = 0;
  bool terminal_;
};

}  // namespace unidle
