// Counters, losses and progress bars of a log.
#pragma once

#include <string>
#include <vector>

#include "unidle/logs/detail/failures.h"
#include "unidle/logs/detail/phases.h"
#include "unidle/logs/detail/progress.h"

namespace unidle::logs::detail {

/// Not thread-safe. Writes what it finds into the log that it was made with.
class Counters {
 public:
  Counters(TextLog& log, const Phases& phases) : log_(log), phases_(phases) {}

  /// What one line tells of progress.
  struct News {
    bool counted = false;  // a count
    bool loss = false;     // a loss with its value
    bool is_bar = false;
    bool validation_bar = false;
  };
  News read(const LogLine& line, std::optional<std::int64_t> now_ns);
  void finish();

 private:
  void count(std::string_view kind, double value, std::optional<double> total, bool with_loss,
             std::optional<std::int64_t> now_ns);
  bool read_counts(const LogLine& line, bool with_loss, std::optional<std::int64_t> now_ns);
  bool read_losses(const LogLine& line);
  void read_rates(const LogLine& line);
  void bar(const Bar& seen, bool validation);

  struct OpenBar {
    std::string label;     // digits left out
    std::string as_drawn;  // with them: they tell one run from the next
    double total = 0;
    double done = 0;
    double elapsed_s = 0;
    bool validation = false;
  };
  void close(const OpenBar& open);

  TextLog& log_;
  const Phases& phases_;
  std::vector<OpenBar> open_bars_;
};

}  // namespace unidle::logs::detail
