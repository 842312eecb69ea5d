#include "unidle/diagnose/detail/development.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "unidle/base/json.h"
#include "unidle/base/stats.h"

namespace unidle::diagnose::detail {

namespace {

constexpr std::size_t kFifths = 5;
constexpr std::size_t kLeast = 4;           // values in each fifth
constexpr double kAlikeSamples = 1.1;       // the largest ratio of samples per step between fifths
constexpr std::size_t kFewestReadings = 4;  // of the memory, which is read every few seconds
constexpr double kMostFalls = 0.2;          // share of the pairs of values of which the later one is not larger
constexpr double kLargestJump = 0.6;        // in a quarter of the values, of the whole growth

/// The medians of the fifths; empty for too few values.
std::vector<double> medians(const std::vector<double>& values) {
  std::vector<double> found;
  for (std::size_t i = 0; i < kFifths && values.size() >= kFifths * kLeast; ++i) {
    const auto at = [&](std::size_t fifth) {
      return values.begin() + static_cast<std::ptrdiff_t>(values.size() * fifth / kFifths);
    };
    found.push_back(median(std::vector<double>(at(i), at(i + 1))));
  }
  return found;
}

bool alike(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax_element(values);
  return !values.empty() && *most <= kAlikeSamples * *least;
}

}  // namespace

bool grows_steadily(const std::vector<double>& fifths) {
  if (fifths.size() < kFewestReadings || fifths.back() <= fifths.front()) {
    return false;
  }
  const double growth = fifths.back() - fifths.front();
  const std::size_t quarter = std::max<std::size_t>(1, (fifths.size() + 1) / 4);  // one jump may last several readings
  int falls = 0;
  for (std::size_t i = 0; i < fifths.size(); ++i) {
    for (std::size_t later = i + 1; later < fifths.size(); ++later) {
      falls += fifths[later] <= fifths[i] ? 1 : 0;
    }
    if (i >= quarter && fifths[i] - fifths[i - quarter] > kLargestJump * growth) {
      return false;
    }
  }
  const auto pairs = static_cast<double>(fifths.size() * (fifths.size() - 1)) / 2;
  return falls <= kMostFalls * pairs;
}

namespace {

/// The job's memory: its limit, or that of the machine.
std::optional<double> memory_limit(const account::RunData& run) {
  const nlohmann::json host = run.meta_value(record::meta::kHost);
  const auto limit = number_in(host, "memory_limit");
  const auto machine = number_in(host, "memory_bytes");
  return limit && machine ? std::min(*limit, *machine) : limit ? limit : machine;
}

/// From the first counted step to the last one.
void read_growth(const account::RunData& run, const account::Timeline& timeline, Development& development) {
  const auto series = run.points(record::series::kTreeMemory);
  const std::int64_t from_ns = timeline.steps[timeline.first_counted].t_ns;
  const std::int64_t to_ns = timeline.steps[timeline.end_counted - 1].t_ns;
  std::vector<double> memory;
  std::vector<double> times;
  for (const record::Point& point : series.empty() ? std::vector<record::Point>{} : *series.front()) {
    if (point.t_ns >= from_ns && point.t_ns <= to_ns) {
      memory.push_back(point.value);
      times.push_back(static_cast<double>(point.t_ns - from_ns) * 1e-9);
    }
  }
  const bool few = memory.size() < kFifths * kLeast;
  development.memory_bytes = few ? memory : medians(memory);
  if (!grows_steadily(development.memory_bytes)) {
    return;
  }
  const double grown = development.memory_bytes.back() - development.memory_bytes.front();
  const std::vector<double> at_s = few ? times : medians(times);
  const double part = (at_s.back() - at_s.front()) / (static_cast<double>(to_ns - from_ns) * 1e-9);
  development.memory_per_step = grown / (part * static_cast<double>(timeline.end_counted - timeline.first_counted));
  const double rate = grown / (at_s.back() - at_s.front());
  if (const auto limit = memory_limit(run)) {
    development.full_in_s = std::max(0.0, *limit - development.memory_bytes.back()) / rate;
  }
}

}  // namespace

void read_development(const account::RunData& run, const account::Account& account, Signals& signals) {
  const account::Timeline& timeline = account.timeline;
  std::vector<double> lengths;
  std::vector<double> samples;
  for (std::size_t i = timeline.first_counted; i < timeline.end_counted; ++i) {
    lengths.push_back(account.periods[i].wall_s);
    samples.push_back(account.periods[i].samples);
  }
  if (lengths.size() < kFifths * kLeast) {
    return;
  }
  Development development;
  if (alike(medians(samples))) {
    development.step_s = medians(lengths);
  }
  read_growth(run, timeline, development);
  signals.development = std::move(development);
}

}  // namespace unidle::diagnose::detail
