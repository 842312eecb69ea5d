// Whether a run came to the last of the units that its log announces.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "unidle/logs/detail/counters.h"
#include "unidle/logs/detail/failures.h"

namespace unidle::logs::detail {

/// "epochs=90", "--epochs 90", "max_iters: 3000", "Training for 300 epochs", behind or before the word that a hit
/// names. Nothing for the epochs of something else: "warmup_epochs=5".
std::optional<double> configured_total(std::string_view line, const Hit& hit);

/// Not thread-safe. Writes into the log that it was made with whether all its units are done.
class Completion {
 public:
  explicit Completion(TextLog& log) : log_(log) {}

  /// A line with a word of Word::kTotal.
  void configure(const LogLine& line);
  /// A line of the run, after the counters have read it.
  void read(const LogLine& line, const Counters::News& news);
  /// After the last line, when bars are closed.
  void finish();

 private:
  /// Beside a counter of the log: its pass since it fell back last, and its value now.
  struct Pass {
    double value = 0;
    double first = 0;               // of this pass
    double step = 0;                // by which it went forward last
    std::optional<double> reached;  // by the pass before
    bool repeats = false;           // a pass before came to its end
    std::int64_t seen = 0;          // as the counter counts its lines
    std::uint64_t seen_line = 0;
    std::uint64_t since_line = 0;            // when it came to its value
    std::int64_t told = 0;                   // lines that told anything since
    std::optional<std::int64_t> least_told;  // between two values before
    bool has_result = false;                 // a loss or a metric since
  };

  static bool is_last(const Counter& counter, const Pass& pass, double total);
  static bool is_through(const Counter& counter, const Pass& pass);
  void follow(const Counter& counter, Pass& pass, const LogLine& line) const;
  void follow_bar(const LogLine& line, const Counters::News& news);
  std::optional<double> total_of(const Counter& counter) const;
  std::optional<std::size_t> outermost() const;
  bool unit_is_done(std::size_t outer) const;
  bool counters_are_done(std::size_t outer) const;
  bool only_bar_is_done() const;
  bool is_whole() const;

  TextLog& log_;
  std::vector<Pass> passes_;  // one a counter
  struct Configured {
    std::string_view counter;
    std::optional<double> total;  // nothing where the log says different ones
  };
  std::vector<Configured> configured_;
  struct LastBar {
    double total = 0;
    double done = 0;
    double seconds = 0;
    std::int64_t runs = 0;
    bool names_training = false;
    bool of_training = false;  // says so, or says nothing
    std::uint64_t line = 0;
  };
  std::vector<LastBar> bars_;  // by their lengths
};

}  // namespace unidle::logs::detail
