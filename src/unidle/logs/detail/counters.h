// Reads counters, losses and progress bars of a log.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/logs/detail/failures.h"
#include "unidle/logs/detail/phases.h"
#include "unidle/logs/detail/progress.h"

namespace unidle::logs::detail {

/// Whether a count slightly below the last one is not a new epoch, but another part of the program that counts from 0,
/// or a slower rank.
bool is_other_numbering(double last, double value);

/// Writes its results into its log. Not thread-safe.
class Counters {
 public:
  Counters(TextLog& log, const Phases& phases) : log_(log), phases_(phases) {}

  /// The progress in one line.
  struct News {
    bool counted = false;
    bool at_first_again = false;  // the outermost count is at its first value, as it was before
    bool fell_back = false;       // and had gone on meanwhile
    bool loss = false;            // a loss with its value
    bool is_bar = false;
    std::string_view bar_label;
    double bar_done = 0;
    double bar_total = 0;
    double bar_seconds = 0;
    bool bar_moved = false;  // false: drawn again with the same value, as at the end of a run
    bool validation_bar = false;
    std::optional<double> steps;  // count of the inner loop
    bool steps_are_samples = false;
  };
  News read(const LogLine& line, std::optional<std::int64_t> now_ns);
  void finish();

 private:
  enum Kind : std::size_t { kEpoch, kStep, kIteration, kEpisode, kRound, kBatch, kSample, kKinds };
  static Kind kind_of(Word word);  // kKinds: no counter
  static std::optional<Count> count_at(const LogLine& line, const Hit& hit);
  /// When a line is read, and what else it contains.
  struct Moment {
    std::optional<std::int64_t> now_ns;
    double train_s = 0;
    bool with_loss = false;
  };
  Counter& counter(Kind kind, double value, const Moment& moment);
  /// Whether the count is at its first value again.
  bool count(Kind kind, double value, std::optional<double> total, const Moment& moment);
  void read_counts(const LogLine& line, const Moment& moment, News& news);
  bool read_losses(const LogLine& line);
  bool bar(const Bar& seen, bool validation);

  struct OpenBar {
    std::string label;     // without digits
    std::string as_drawn;  // with digits, which distinguish the bar's runs
    double total = 0;
    double done = 0;
    double elapsed_s = 0;
    bool validation = false;
    bool counts_samples = false;
  };
  void close(const OpenBar& open);

  TextLog& log_;
  const Phases& phases_;
  std::vector<OpenBar> open_bars_;
  std::array<std::size_t, kKinds> places_{};  // place of each kind in the log's counters, from 1; 0: not seen yet
};

}  // namespace unidle::logs::detail
