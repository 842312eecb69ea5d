// Chooses the number of workers and the prefetch depth from how long consumer and workers have waited.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace unidle::data::detail {

/// Measurements over an interval and several batches.
struct WaitWindow {
  double consumer_wait = 0;       // share of time that the consumer waited for a batch
  double worker_wait = 0;         // share of time that active workers waited for a slot, on average
  double rate = 0;                // samples per second taken by the consumer
  std::int64_t fewest_ready = 0;  // lowest number of complete batches when the consumer asked for one
};

struct Pace {
  int workers = 1;
  std::int64_t depth = 1;  // maximum of batches made ahead
  bool operator==(const Pace&) const = default;
};

/// A pure object: its output depends only on the windows it was given.
///
/// Starts with the maximum of both, so that nothing is slower than without it, and removes what is idle. A waiting
/// consumer gets more: depth when workers waited for slots, otherwise workers.
///
/// It is stable because it never repeats a failed step. Each step is on trial for some windows. A reduction that makes
/// the consumer wait is undone, as is an increase that delivers no more samples; it does not return to a pace at which
/// the consumer had to wait. What was learned holds as long as the conditions (the rate, and the workers' time per
/// sample) do. Under constant conditions the steps therefore end.
class Adaptation {
 public:
  struct Limits {
    int most_workers = 1;
    std::int64_t least_depth = 1;
    std::int64_t most_depth = 1;
  };
  explicit Adaptation(const Limits& limits);

  const Pace& pace() const { return pace_; }
  /// Returns the pace after this window, which was measured at the previous pace.
  const Pace& next(const WaitWindow& window);

 private:
  /// Cost of a sample and rate; medians over several windows.
  struct Conditions {
    double rate = 0;
    double cost = 0;  // worker seconds per sample
    bool like(const Conditions& other) const;
  };
  /// A value known to be wrong as long as the conditions hold.
  struct Bar {
    std::int64_t value = 0;
    Conditions conditions;
  };
  /// Workers or depth.
  struct Dial {
    std::optional<Bar> too_few;   // with this or less the consumer waits
    std::optional<Bar> too_many;  // this or more brings nothing
  };
  struct Trial {
    Pace before;
    Conditions conditions;
    double consumer_wait;
  };

  void keep(const WaitWindow& window);
  const WaitWindow& window(std::size_t back) const { return windows_[(count_ - back) % kManyWindows]; }
  void forget_what_changed(const Conditions& now);
  double consumer_wait(std::size_t windows) const;  // mean of the last windows
  bool hungry() const;
  /// A median, so that single windows do not count, such as one with a pause of the consumer.
  double median_of(double WaitWindow::*value, std::size_t windows) const;
  double worker_wait(std::size_t windows = kWindows) const { return median_of(&WaitWindow::worker_wait, windows); }
  Conditions conditions(std::size_t windows = kWindows) const;
  std::int64_t fewest_ready() const;
  /// True when the step on trial has been judged.
  bool judge();
  void take_back();
  std::optional<Pace> more() const;
  std::optional<Pace> less() const;
  void step(const Pace& to);

  static constexpr std::size_t kWindows = 8;       // to judge a step
  static constexpr std::size_t kManyWindows = 32;  // to try a reduction, or to notice changed conditions
  Limits limits_;
  Pace pace_;
  std::array<WaitWindow, kManyWindows> windows_{};  // since the last step, the newest at (count_ - 1) % kManyWindows
  std::size_t count_ = 0;
  bool settling_ = true;  // the next window still contains work at the previous pace
  Dial workers_;
  Dial depth_;
  std::optional<Trial> trial_;
};

}  // namespace unidle::data::detail
