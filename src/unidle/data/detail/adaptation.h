// How many workers, and how many batches ahead of whoever takes them, from what both have waited.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace unidle::data::detail {

/// What was measured over a stretch of time and some batches.
struct WaitWindow {
  double consumer_wait = 0;       // share of the time that the consumer waited for a batch that was not ready
  double worker_wait = 0;         // share of their time that the workers at work waited for a slot, on average
  double rate = 0;                // samples that the consumer took, a second
  std::int64_t fewest_ready = 0;  // of the counts of complete batches, whenever the consumer asked for one
};

struct Pace {
  int workers = 1;
  std::int64_t depth = 1;  // batches that are made ahead, at most
  bool operator==(const Pace&) const = default;
};

/// A pure object: what it says depends on the windows that it was given and on nothing else.
///
/// It begins with the most of both, so that nothing is slower than without it, and takes away what is idle. A consumer
/// that waits gets more: depth where workers waited for slots meanwhile, workers otherwise.
///
/// It is stable because it never tries twice what failed. Each step is on trial for some windows. Less that leaves the
/// consumer waiting is taken back, and so is more that brings no more samples; a pace that had to be left because the
/// consumer waited is not returned to. What was learned holds as long as the conditions do: the rate, and the time of
/// workers that a sample costs. So with conditions that stay there is an end to the steps.
class Adaptation {
 public:
  struct Limits {
    int most_workers = 1;
    std::int64_t least_depth = 1;
    std::int64_t most_depth = 1;
  };
  explicit Adaptation(const Limits& limits);

  const Pace& pace() const { return pace_; }
  /// The pace after that window, which was measured at the pace before.
  const Pace& next(const WaitWindow& window);

 private:
  /// What a sample costs and how many are taken; of the medians of some windows.
  struct Conditions {
    double rate = 0;
    double cost = 0;  // seconds of a worker's work
    bool like(const Conditions& other) const;
  };
  /// What is known to be wrong, as long as the conditions stay.
  struct Bar {
    std::int64_t value = 0;
    Conditions conditions;
  };
  /// Workers or depth.
  struct Dial {
    std::optional<Bar> too_few;   // this and less leaves the consumer waiting
    std::optional<Bar> too_many;  // this and more brings nothing
  };
  struct Trial {
    Pace before;
    Conditions conditions;
    double consumer_wait;
  };

  void keep(const WaitWindow& window);
  const WaitWindow& window(std::size_t back) const { return windows_[(count_ - back) % kManyWindows]; }
  void forget_what_changed(const Conditions& now);
  double consumer_wait(std::size_t windows) const;  // mean of the last ones
  bool hungry() const;
  /// Passes over single windows that say nothing of the rest, such as one with a pause of the consumer.
  double median_of(double WaitWindow::*value, std::size_t windows) const;
  double worker_wait(std::size_t windows = kWindows) const { return median_of(&WaitWindow::worker_wait, windows); }
  Conditions conditions(std::size_t windows = kWindows) const;
  std::int64_t fewest_ready() const;
  /// Whether the step on trial is judged.
  bool judge();
  void take_back();
  std::optional<Pace> more() const;
  std::optional<Pace> less() const;
  void step(const Pace& to);

  static constexpr std::size_t kWindows = 8;       // that a step is judged by
  static constexpr std::size_t kManyWindows = 32;  // before less is tried, and before conditions count as changed
  Limits limits_;
  Pace pace_;
  std::array<WaitWindow, kManyWindows> windows_{};  // since the last step, the newest at (count_ - 1) % kManyWindows
  std::size_t count_ = 0;
  bool settling_ = true;  // the next window still has something of the pace before
  Dial workers_;
  Dial depth_;
  std::optional<Trial> trial_;
};

}  // namespace unidle::data::detail
