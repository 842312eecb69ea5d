// Decides whether a run reached the last of the units that its log announces.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "unidle/logs/detail/counters.h"
#include "unidle/logs/detail/failures.h"

namespace unidle::logs::detail {

/// The total beside the word of a hit: "epochs=90", "--epochs 90", "max_iters: 3000", "Training for 300 epochs".
/// Nothing for other epochs: "warmup_epochs=5".
std::optional<double> configured_total(std::string_view line, const Hit& hit);

/// Writes into its log whether all units are done. Not thread-safe.
class Completion {
 public:
  explicit Completion(TextLog& log) : log_(log) {}

  /// A line with a word of Word::kTotal.
  void configure(const LogLine& line);
  /// Call after the counters have read the line.
  void read(const LogLine& line, const Counters::News& news);
  /// Call after the last line, when bars are closed.
  void finish();

 private:
  /// State of one counter of the log: its current value and the pass since it last restarted.
  struct Pass {
    double value = 0;
    double first = 0;               // of this pass
    double step = 0;                // last increment
    std::optional<double> reached;  // last value of the previous pass
    bool repeats = false;           // a previous pass reached its end
    std::int64_t seen = 0;          // lines with this counter
    std::uint64_t seen_line = 0;
    std::uint64_t since_line = 0;            // line of its last change
    std::uint64_t since_row = 0;             // the same among the lines that were read here
    std::int64_t told = 0;                   // informative lines since then
    std::optional<std::int64_t> least_told;  // fewest between two earlier values
    bool has_result = false;                 // a loss or a metric since then
    bool ended = false;                      // a line said so since then
    bool restarted = false;                  // in this run
    bool of_earlier_run = false;
    std::optional<double> total;
  };

  static bool is_last(const Counter& counter, const Pass& pass, double total);
  static bool is_at_end(const Counter& counter, const Pass& pass);
  static bool begins_run(const Counter& counter, const Pass& pass);
  void begin(const Counter& counter, Pass& pass, const LogLine& line) const;
  bool is_only_loop(const Counter& counter) const;
  void follow(const Counter& counter, Pass& pass, const LogLine& line) const;
  void follow_bar(const LogLine& line, const Counters::News& news);
  std::optional<double> total_of(const Counter& counter) const;
  std::optional<std::size_t> outermost() const;
  bool unit_is_done(std::size_t outer) const;
  bool counters_are_done(std::size_t outer) const;
  bool only_bar_is_done() const;
  bool is_whole() const;

  TextLog& log_;
  std::uint64_t rows_ = 0;    // calls of read(); a bar makes many on one line
  std::vector<Pass> passes_;  // one per counter
  struct Configured {
    std::string_view counter;
    std::optional<double> total;  // nothing if the log gives different totals
  };
  std::vector<Configured> configured_;
  struct LastBar {
    double total = 0;
    double done = 0;
    double seconds = 0;
    std::int64_t runs = 0;
    bool names_training = false;
    bool of_training = false;  // its label names training or is empty
    std::uint64_t line = 0;
    std::uint64_t row = 0;
  };
  std::vector<LastBar> bars_;  // by their totals
};

}  // namespace unidle::logs::detail
