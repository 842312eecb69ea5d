// Writes to the program's own terminal.
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
/// Columns of the stream's terminal; if it is not a terminal, $COLUMNS or 80.
int terminal_width(std::FILE* stream);

/// `text` in a style given by SGR parameters ("31;1"), for write_to() only. The marker contains a number drawn at
/// random in every process, so that foreign text cannot contain it.
std::string painted(std::string_view text, std::string_view parameters);

/// The only way to write text. Makes it printable() and applies the styles of painted(), also for files and pipes,
/// which a terminal may show later. Throws kIo when the stream refuses or was closed when the process started. Errors
/// of stderr and readers that have gone away (EPIPE) are ignored.
void write_to(std::FILE* stream, std::string_view text);
/// Flushes standard output; call it at the end of every command. False when its reader has gone away. Throws like
/// write_to(), so that truncated output is not taken for complete.
bool flush_output();
template <typename... Args>
void print_to(std::FILE* stream, fmt::format_string<Args...> format, Args&&... args) {
  write_to(stream, fmt::format(format, std::forward<Args>(args)...));
}
/// Prints a message of unidle on stderr, "unidle: ...", always on one line; never throws.
void say_error(std::string_view program, std::string_view text) noexcept;

/// Wraps words at `width` columns; indents every line after the first by `indent`. Counts columns, see display_width().
std::string wrap(std::string_view text, int width, int indent = 0);

/// A one-line progress display on stderr; silent when stderr is not a terminal or the work ends within two seconds. Not
/// thread-safe.
class Progress {
 public:
  Progress(std::string label, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void update(std::uint64_t done, std::string_view note = {});
  /// Whether update() would draw now: for callers whose note is expensive.
  bool due() const;

 private:
  std::string label_;
  std::uint64_t total_;
  std::int64_t start_ns_;
  std::int64_t drawn_ns_ = 0;
  bool terminal_;
};

}  // namespace unidle
