#include "unidle/data/detail/adaptation.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "unidle/base/stats.h"

namespace unidle::data::detail {

namespace {

// Shares of time. Between these two, a consumer gets what it needs and little more.
constexpr double kStarved = 0.03;
constexpr double kFed = 0.01;
constexpr double kIdle = 0.1;      // of workers: they wait for slots
constexpr double kFullest = 0.8;   // largest share of its time that a worker may work after others were removed
constexpr double kGain = 0.25;     // of what more workers would bring if each were as fast as before
constexpr double kLike = 0.3;      // conditions count as unchanged within this variation
constexpr std::size_t kSoon = 3;   // number of windows after which starvation is acted upon
constexpr double kStarving = 0.1;  // share of waiting that counts as starvation

}  // namespace

Adaptation::Adaptation(const Limits& limits) : limits_(limits), pace_{limits.most_workers, limits.most_depth} {}

bool Adaptation::Conditions::like(const Conditions& other) const {
  const auto near = [](double a, double b) { return std::abs(a - b) <= kLike * std::max(a, b); };
  return near(rate, other.rate) && near(cost, other.cost);
}

void Adaptation::keep(const WaitWindow& window) { windows_[count_++ % kManyWindows] = window; }

double Adaptation::consumer_wait(std::size_t windows) const {
  const std::size_t known = std::min(windows, count_);
  double sum = 0;
  for (std::size_t back = 1; back <= known; ++back) {
    sum += window(back).consumer_wait;
  }
  return known == 0 ? 0 : sum / static_cast<double>(known);
}

double Adaptation::median_of(double WaitWindow::*value, std::size_t windows) const {
  std::array<double, kManyWindows> values{};
  const std::size_t known = std::min(windows, count_);
  for (std::size_t back = 1; back <= known; ++back) {
    values[back - 1] = window(back).*value;
  }
  return known == 0 ? 0 : median(std::span(values).first(known));
}

Adaptation::Conditions Adaptation::conditions(std::size_t windows) const {
  const double rate = median_of(&WaitWindow::rate, windows);
  return {rate, rate > 0 ? pace_.workers * (1 - worker_wait(windows)) / rate : 0};
}

std::int64_t Adaptation::fewest_ready() const {
  std::int64_t fewest = limits_.most_depth;
  for (std::size_t back = 1; back <= std::min(count_, kManyWindows); ++back) {
    fewest = std::min(fewest, window(back).fewest_ready);
  }
  return fewest;
}

bool Adaptation::hungry() const {
  return (count_ >= kSoon && consumer_wait(kSoon) >= kStarving) ||
         (count_ >= kWindows && consumer_wait(kWindows) >= kStarved);
}

void Adaptation::forget_what_changed(const Conditions& now) {
  for (Dial* dial : {&workers_, &depth_}) {
    for (std::optional<Bar>* bar : {&dial->too_few, &dial->too_many}) {
      if (*bar && !(*bar)->conditions.like(now)) {
        bar->reset();
      }
    }
  }
}

void Adaptation::step(const Pace& to) {
  trial_ = Trial{pace_, conditions(), consumer_wait(kWindows)};
  pace_ = to;
  count_ = 0;
  settling_ = true;
}

void Adaptation::take_back() {
  const bool fewer = pace_.workers < trial_->before.workers || pace_.depth < trial_->before.depth;
  const bool of_workers = pace_.workers != trial_->before.workers;
  Dial& dial = of_workers ? workers_ : depth_;
  (fewer ? dial.too_few : dial.too_many) = Bar{of_workers ? pace_.workers : pace_.depth, trial_->conditions};
  pace_ = trial_->before;
  trial_.reset();
  count_ = 0;
  settling_ = true;
}

bool Adaptation::judge() {
  const Pace& before = trial_->before;
  const bool more_workers = pace_.workers > before.workers;
  if (!more_workers && pace_.depth <= before.depth) {  // fewer: it must do
    if (hungry()) {
      take_back();
      return true;
    }
    if (count_ >= kWindows) {
      trial_.reset();
    }
    return count_ >= kWindows;
  }
  if (count_ < kWindows) {
    return false;
  }
  const Conditions now = conditions();
  const double wanted =
      more_workers ? 1 + kGain * (static_cast<double>(pace_.workers) / before.workers - 1) : 1 + kStarved;
  const double wait = consumer_wait(kWindows);
  const bool helps = wait < kStarved || now.rate >= wanted * trial_->conditions.rate ||
                     (!more_workers && wait <= (1 - kGain) * trial_->consumer_wait);
  if (!helps) {
    take_back();
    return true;
  }
  (more_workers ? workers_ : depth_).too_few = Bar{more_workers ? before.workers : before.depth, now};
  trial_.reset();
  return true;
}

std::optional<Pace> Adaptation::more() const {
  const auto allowed = [](const Dial& dial, std::int64_t value) {
    return !dial.too_many || value < dial.too_many->value;
  };
  const Pace deeper{pace_.workers,
                    std::min(limits_.most_depth, pace_.depth + std::max<std::int64_t>(1, pace_.depth / 2))};
  const Pace larger{std::min(limits_.most_workers, pace_.workers + std::max(1, pace_.workers / 4)), pace_.depth};
  if (worker_wait() >= kIdle && deeper != pace_ && allowed(depth_, deeper.depth)) {
    return deeper;
  }
  if (larger != pace_ && allowed(workers_, larger.workers)) {
    return larger;
  }
  return std::nullopt;
}

std::optional<Pace> Adaptation::less() const {
  const auto least = [](const Dial& dial, std::int64_t otherwise) {
    return dial.too_few ? std::max(otherwise, dial.too_few->value + 1) : otherwise;
  };
  const double busy = pace_.workers * (1 - worker_wait(kManyWindows));
  const auto needed = std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(busy / kFullest)), pace_.workers / 2);
  const auto fewer = static_cast<int>(std::max<std::int64_t>(needed, least(workers_, 1)));
  if (fewer < pace_.workers) {
    return Pace{fewer, pace_.depth};
  }
  const std::int64_t ready = fewest_ready();
  const std::int64_t shallower =
      std::max(least(depth_, limits_.least_depth), pace_.depth - std::max<std::int64_t>(1, ready / 2));
  if (ready > pace_.depth / 2 && shallower < pace_.depth) {
    return Pace{pace_.workers, shallower};
  }
  return std::nullopt;
}

const Pace& Adaptation::next(const WaitWindow& window) {
  if (settling_) {
    settling_ = false;
    return pace_;
  }
  keep(window);
  if (trial_ && !judge()) {
    return pace_;
  }
  if (count_ >= kManyWindows) {
    forget_what_changed(conditions(kManyWindows));
  }
  if (hungry()) {
    if (const auto to = more()) {
      step(*to);
    }
  } else if (count_ >= kManyWindows && consumer_wait(kManyWindows) <= kFed) {
    if (const auto to = less()) {
      step(*to);
    }
  }
  return pace_;
}

}  // namespace unidle::data::detail
