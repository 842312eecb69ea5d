// Reads from its log how a run ended.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/logs/detail/keywords.h"
#include "unidle/logs/text_log.h"

namespace unidle::logs::detail {

/// A line of a log and what was found in it.
struct LogLine {
  std::string_view text;
  std::uint64_t number = 0;
  const Hits& hits;
  std::size_t bar_at = std::string_view::npos;  // position of "%|"
};

/// Writes its results into its log. Not thread-safe.
class Failures {
 public:
  explicit Failures(TextLog& log) : log_(log) {}

  /// Whether the line belongs to a traceback, including its message: it says nothing about progress. Call before
  /// read().
  bool in_traceback(std::string_view line);
  /// `now_ns`: the last time in the log so far.
  void read(const LogLine& line, std::optional<std::int64_t> now_ns);
  /// Closes a traceback that the end of the file cuts off, and an attempt that a later one followed.
  void finish(std::optional<std::int64_t> last_ns);

 private:
  /// An open traceback; several processes that share an output may each have one.
  struct Open {
    std::string prefix;  // "[rank0]: " before every line
    Failure failure;
    std::string first_between;  // line inside it that is neither a frame nor an exception
    std::size_t between = 0;    // such lines
    bool ignored = false;       // ignored by Python itself, mostly in destructors at shutdown
    bool of_thread = false;     // ends a thread, and the program only if it waits for its result
  };
  static constexpr std::size_t kMostOpen = 64;
  static constexpr std::size_t kMostBetween = 200;  // a buffer of stdout
  /// The first line of a kind in this run that may mean the end.
  struct FirstEnd {
    std::optional<std::int64_t> progress;  // progress lines before it
    std::int64_t restarts = 0;             // restarts of the epochs until then
  };

  void begin_traceback(const LogLine& line, std::size_t at);
  std::vector<Open>::iterator open_of(std::string_view line);
  static bool goes_on(const Open& open, std::string_view line);
  void end_traceback(std::vector<Open>::iterator open, std::string_view message);
  void scheduler(const LogLine& line);
  bool went_on(const SchedulerEnd& end, std::optional<std::int64_t> until_ns) const;
  void begin_next_attempt();
  bool root_cause(const LogLine& line);
  bool announced_thread(std::uint64_t line) const;
  bool is_first_end(FirstEnd& first) const;
  void failure(const LogLine& line);
  void claim(const LogLine& line);
  void add(Failure failure);
  Quote quote(const LogLine& line) const;

  TextLog& log_;
  std::vector<Open> open_;
  std::optional<std::int64_t> now_ns_;
  std::optional<std::uint64_t> ignored_line_;
  std::uint64_t threads_ = 0;      // announced by "Exception in thread", without their traceback so far
  std::uint64_t thread_line_ = 0;  // of the last of them
  FirstEnd bare_end_;              // of "Done."
  FirstEnd part_end_;              // of words that may be about a part
  std::optional<SchedulerEnd> sigterm_;
  bool root_cause_ = false;  // inside torchrun's report on the process that failed first
};

/// At most 400 bytes of a line, without control characters, cut between characters.
std::string quotable(std::string_view line);

}  // namespace unidle::logs::detail
