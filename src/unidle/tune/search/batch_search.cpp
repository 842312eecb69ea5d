#include "unidle/tune/search/batch_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/numbers.h"
#include "unidle/tune/advice/proposals.h"

namespace unidle::tune {

namespace {

/// A factor of the present size in either direction, beyond the reach of any search.
constexpr long long kFarthest = 4096;

/// To four digits: nobody writes more.
double rounded(double rate) { return parse_number<double>(fmt::format("{:.4g}", rate)).value_or(rate); }

/// The learning rate for an effective batch that is `factor` times as large. Adam-like optimisers keep their noise
/// scale when it grows with the square root of the batch (Malladi 2022).
std::optional<double> scaled_rate(const knobs::Settings& settings, double factor) {
  const knobs::Value* rate = settings.find("optimizer.lr");
  return rate == nullptr ? std::nullopt : std::optional(rounded(*rate->number() * std::sqrt(factor)));
}

BatchChoice choice(const knobs::Settings& settings, long long size, long long accumulation, long long effective) {
  BatchChoice made{size, {{"batch.size", size}}, {}};
  if (settings.contains("batch.accumulation")) {
    made.changes.set("batch.accumulation", accumulation);
  }
  const long long now = size * accumulation;
  if (now == effective) {
    made.reason = fmt::format("micro-batches of {} at the same effective batch of {}", size, effective);
    return made;
  }
  const double factor = static_cast<double>(now) / static_cast<double>(effective);
  if (const auto rate = scaled_rate(settings, factor)) {
    made.changes.set("optimizer.lr", *rate);
    made.reason = fmt::format("an effective batch of {} instead of {}, with the learning rate scaled by its root", now,
                              effective);
  } else {
    made.reason = fmt::format("an effective batch of {} instead of {}", now, effective);
  }
  return made;
}

std::vector<long long> divisors(long long number) {
  std::vector<long long> found;
  for (long long each = 1; each * each <= number; ++each) {
    if (number % each == 0) {
      found.insert(found.end(), {each, number / each});
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<long long> free_sizes(long long size) {
  std::vector<long long> sizes;
  for (long long factor = 1; factor <= kFarthest; factor *= 2) {
    sizes.push_back(size * factor);
    sizes.push_back(size * factor * 3 / 2);
    if (size % factor == 0) {
      sizes.push_back(size / factor);
    }
  }
  std::erase(sizes, 0);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace

std::vector<BatchChoice> batch_choices(const knobs::Settings& settings, bool allow_semantic, long long run_samples) {
  const long long size = settings.integer("batch.size");
  const long long accumulation = std::max(1LL, settings.integer("batch.accumulation"));
  if (!settings.contains("batch.size") || size <= 0 || size > kLargestBatch || accumulation > kLargestBatch) {
    return {};
  }
  const long long effective = size * accumulation;
  std::vector<BatchChoice> choices;
  if (allow_semantic) {
    for (const long long each : free_sizes(size)) {
      const bool divides = effective % each == 0 && settings.contains("batch.accumulation");
      if (divides || each == size || each <= run_samples) {
        choices.push_back(choice(settings, each, divides ? effective / each : 1, effective));
      }
    }
  } else if (settings.contains("batch.accumulation")) {
    for (const long long each : divisors(effective)) {
      choices.push_back(choice(settings, each, effective / each, effective));
    }
  }
  for (BatchChoice& each : choices) {
    if (each.size == size) {
      each.changes = {};
    }
  }
  return choices.size() < 2 ? std::vector<BatchChoice>() : choices;
}

BatchSearch::BatchSearch(std::vector<long long> sizes, std::size_t start, int trials)
    : sizes_(std::move(sizes)), start_(start), best_(start), left_(trials), reach_(start) {}

std::optional<std::size_t> BatchSearch::next() const {
  if (left_ <= 0) {
    return std::nullopt;
  }
  return up_ ? doubled() : down_ ? halved() : between();
}

void BatchSearch::report(Result result) {
  const auto tried = next();
  if (!tried) {
    return;
  }
  --left_;
  const bool doubling = up_;
  const bool first = best_ == start_;
  up_ = false;
  if (result == Result::kBetter) {
    best_ = reach_ = *tried;
    flat_ = false;
    up_ = doubling && reach_ + 1 < sizes_.size();
  } else if (doubling && !flat_ && result == Result::kFlat && *tried + 1 < sizes_.size()) {
    reach_ = *tried;
    up_ = flat_ = true;
  } else if (flat_ || down_ || result == Result::kFlat) {
    left_ = 0;
  } else if (doubling && first && result == Result::kWorse) {
    down_ = true;
  } else {
    above_ = tried;
  }
}

/// The first size that is at least twice the last one, or else the largest.
std::optional<std::size_t> BatchSearch::doubled() const {
  if (reach_ + 1 >= sizes_.size()) {
    return std::nullopt;
  }
  const auto from = sizes_.begin() + static_cast<std::ptrdiff_t>(reach_ + 1);
  const auto found = std::lower_bound(from, sizes_.end(), 2 * sizes_[reach_]);
  return static_cast<std::size_t>((found == sizes_.end() ? found - 1 : found) - sizes_.begin());
}

std::optional<std::size_t> BatchSearch::halved() const {
  if (best_ == 0) {
    return std::nullopt;
  }
  const auto end = sizes_.begin() + static_cast<std::ptrdiff_t>(best_);
  const auto found = std::upper_bound(sizes_.begin(), end, sizes_[best_] / 2);
  return static_cast<std::size_t>((found == sizes_.begin() ? found : found - 1) - sizes_.begin());
}

/// The size nearest to the geometric mean of the best size and the one that did not pay.
std::optional<std::size_t> BatchSearch::between() const {
  if (!above_ || *above_ <= best_ + 1) {
    return std::nullopt;
  }
  const double middle = std::sqrt(static_cast<double>(sizes_[best_]) * static_cast<double>(sizes_[*above_]));
  std::size_t nearest = best_ + 1;
  for (std::size_t i = nearest; i < *above_; ++i) {
    if (std::abs(std::log(static_cast<double>(sizes_[i]) / middle)) <
        std::abs(std::log(static_cast<double>(sizes_[nearest]) / middle))) {
      nearest = i;
    }
  }
  return nearest;
}

}  // namespace unidle::tune
