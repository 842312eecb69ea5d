// Measures how a loader's threads spend their time. Each thread writes its own sums, without locks or allocations.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "unidle/base/clock.h"
#include "unidle/data/stage.h"

namespace unidle::data::detail {

/// Written by one thread; others may read concurrently.
class StageSums {
 public:
  void add(Stage stage, std::int64_t ns) {
    std::atomic<std::int64_t>& sum = ns_[static_cast<std::size_t>(stage)];
    sum.store(sum.load(std::memory_order_relaxed) + ns, std::memory_order_relaxed);
  }
  std::int64_t ns(std::size_t stage) const { return ns_[stage].load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::int64_t>, kStages> ns_{};
};

/// How long one thread has waited, readable by others even during the wait.
class WaitSum {
 public:
  void begin(std::int64_t now_ns) { since_ns_.store(now_ns, std::memory_order_release); }
  void end(std::int64_t now_ns) {
    sum_ns_.store(sum_ns_.load(std::memory_order_relaxed) + now_ns - since_ns_.load(std::memory_order_relaxed),
                  std::memory_order_relaxed);
    since_ns_.store(0, std::memory_order_release);
  }
  /// Thread-safe. A wait that ends concurrently may be missing until the next call.
  std::int64_t ns(std::int64_t now_ns) const {
    const std::int64_t sum_ns = sum_ns_.load(std::memory_order_relaxed);
    const std::int64_t since_ns = since_ns_.load(std::memory_order_acquire);
    return sum_ns + (since_ns == 0 ? 0 : std::max<std::int64_t>(0, now_ns - since_ns));
  }

 private:
  std::atomic<std::int64_t> sum_ns_{0};
  std::atomic<std::int64_t> since_ns_{0};  // 0: not waiting
};

/// The current stage of the calling thread.
struct StageClock {
  StageSums* sums = nullptr;  // null: not counted
  Stage stage = Stage::kGather;
  std::int64_t since_ns = 0;

  static StageClock& of_thread() {
    static thread_local StageClock clock;
    return clock;
  }
  void change(Stage to) {
    const std::int64_t now_ns = system_clock().now_ns();
    sums->add(stage, now_ns - since_ns);
    stage = to;
    since_ns = now_ns;
  }
};

/// While this exists, the calling thread's time is counted: as kGather unless an InStage says otherwise.
class StagesCounted {
 public:
  explicit StagesCounted(StageSums& sums) {
    StageClock::of_thread() = {&sums, Stage::kGather, system_clock().now_ns()};
  }
  ~StagesCounted() {
    StageClock& clock = StageClock::of_thread();
    clock.change(Stage::kGather);
    clock.sums = nullptr;
  }
  StagesCounted(const StagesCounted&) = delete;
  StagesCounted& operator=(const StagesCounted&) = delete;
};

/// Sets the thread's stage until destroyed, then restores the previous one. Costs two clock readings.
class InStage {
 public:
  explicit InStage(Stage stage) : before_(StageClock::of_thread().stage) { change(stage); }
  ~InStage() { change(before_); }
  InStage(const InStage&) = delete;
  InStage& operator=(const InStage&) = delete;

 private:
  static void change(Stage stage) {
    if (StageClock& clock = StageClock::of_thread(); clock.sums != nullptr) {
      clock.change(stage);
    }
  }
  Stage before_;
};

}  // namespace unidle::data::detail
