// How a run ended, as its log tells.
#pragma once

#include <string>
#include <string_view>

#include "unidle/logs/detail/keywords.h"
#include "unidle/logs/text_log.h"

namespace unidle::logs::detail {

/// A line of a log with what was found in it.
struct LogLine {
  std::string_view text;
  std::uint64_t number = 0;
  const Hits& hits;
  std::size_t bar_at = std::string_view::npos;  // where "%|" stands
};

/// Not thread-safe. Writes what it finds into the log that it was made with.
class Failures {
 public:
  explicit Failures(TextLog& log) : log_(log) {}

  /// True while the lines belong to a traceback: they are code and no news of the run. To be asked before read().
  bool in_traceback(std::string_view line);
  void read(const LogLine& line);
  /// A traceback that the file breaks off in.
  void finish();

 private:
  void begin_traceback(const LogLine& line, std::size_t at);
  void end_traceback();
  void scheduler(const LogLine& line);
  void memory(const LogLine& line);
  void crash(const LogLine& line);
  void error(const LogLine& line);
  void claim(const LogLine& line);
  Quote quote(const LogLine& line) const;

  TextLog& log_;
  bool open_ = false;
  Quote traceback_;
  std::string prefix_;  // "[rank0]: " before every line
  std::optional<std::uint64_t> ignored_line_;
};

/// At most 400 bytes of a line, without control characters, cut at a whole character.
std::string quotable(std::string_view line);

}  // namespace unidle::logs::detail
