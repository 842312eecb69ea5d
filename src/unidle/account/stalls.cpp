#include "unidle/account/stalls.h"

#include <algorithm>
#include <cmath>

#include "unidle/base/stats.h"

namespace unidle::account {

namespace {

constexpr double kManyTimes = 4;         // a stall takes at least this many usual steps
constexpr double kLeastS = 0.02;         // beyond a usual step
constexpr std::size_t kFewest = 4;       // stalls at equal distances in steps
constexpr std::size_t kFewestTimes = 6;  // in seconds, which random stalls imitate more easily
constexpr double kMostAlike = 0.75;      // share of the distances that are near their median
constexpr double kNear = 0.05;           // of the median
constexpr double kMostNear = 0.25;       // of the median, where one step is more than kNear of it
constexpr double kLeastApart = 2;        // the median distance in steps; a burst of slow steps does not come back
constexpr double kLeastCovered = 0.5;    // share of the counted steps between the first stall and the last

/// Seconds of each part; the gap until the next step is no part of the step.
Parts with_gap(const Period& period) {
  Parts parts = period.parts;
  parts[kOther] += std::max(0.0, period.wall_s - period.step_s);
  return parts;
}

std::vector<double> distances_of(const std::vector<double>& at) {
  std::vector<double> distances;
  for (std::size_t i = 1; i < at.size(); ++i) {
    distances.push_back(at[i] - at[i - 1]);
  }
  return distances;
}

/// True for stalls in the steps `at` that neither follow each other at once nor lie in a small part of the steps.
bool are_spread(const std::vector<double>& at, std::size_t counted) {
  return at.size() >= kFewest && median(distances_of(at)) >= kLeastApart &&
         at.back() - at.front() >= kLeastCovered * static_cast<double>(counted);
}

/// The median distance when most are near it, else nothing.
/// `fixed` is what a stall itself takes of each distance: it is alike however the stalls lie.
std::optional<double> regular(const std::vector<double>& at, double least_near, double fixed, std::size_t fewest) {
  if (at.size() < fewest) {
    return std::nullopt;
  }
  const std::vector<double> distances = distances_of(at);
  const double middle = median(distances);
  const double near = std::max(std::min(least_near, kMostNear * middle), kNear * (middle - fixed));
  const auto alike =
      std::ranges::count_if(distances, [&](double distance) { return std::abs(distance - middle) <= near; });
  const bool most = static_cast<double>(alike) >= kMostAlike * static_cast<double>(distances.size());
  return most ? std::optional(middle) : std::nullopt;
}

/// The part in which the mean stalled step takes longest beyond the mean of the others.
Part longest_part(const std::vector<Period>& periods, const std::vector<std::size_t>& stalled, std::size_t from,
                  std::size_t to) {
  Parts beyond{};
  const auto add = [&](std::size_t i, double weight) {
    const Parts parts = with_gap(periods[i]);
    for (std::size_t part = 0; part < kPartCount; ++part) {
      beyond[part] += weight * parts[part];
    }
  };
  const double each = 1 / static_cast<double>(stalled.size());
  const double each_other = 1 / static_cast<double>(to - from - stalled.size());
  for (std::size_t i = from; i < to; ++i) {
    add(i, std::ranges::binary_search(stalled, i) ? each : -each_other);
  }
  return static_cast<Part>(std::ranges::max_element(beyond) - beyond.begin());
}

}  // namespace

std::optional<Stalls> stalls(const Timeline& timeline, const std::vector<Period>& periods) {
  std::vector<double> walls_s;
  for (std::size_t i = timeline.first_counted; i < timeline.end_counted; ++i) {
    walls_s.push_back(periods[i].wall_s);
  }
  if (walls_s.size() < kFewest * 2) {
    return std::nullopt;
  }
  Stalls found;
  found.usual_step_s = median(walls_s);
  std::vector<std::size_t> stalled;
  std::vector<double> steps;
  std::vector<double> times_s;
  std::vector<double> beyond_s;
  for (std::size_t i = timeline.first_counted; i < timeline.end_counted; ++i) {
    const double beyond = periods[i].wall_s - found.usual_step_s;
    if (periods[i].wall_s >= kManyTimes * found.usual_step_s && beyond >= kLeastS) {
      stalled.push_back(i);
      steps.push_back(static_cast<double>(i));
      times_s.push_back(static_cast<double>(periods[i].begin_ns) * 1e-9);
      beyond_s.push_back(beyond);
      found.total_s += beyond;
    }
  }
  if (!are_spread(steps, walls_s.size())) {
    return std::nullopt;
  }
  found.each_s = median(beyond_s);
  found.every_steps = regular(steps, 1, 0, kFewest);
  if (!found.every_steps) {
    found.every_s = regular(times_s, 0, found.usual_step_s + found.each_s, kFewestTimes);
  }
  if (!found.every_steps && !found.every_s) {
    return std::nullopt;
  }
  found.count = stalled.size();
  found.part = longest_part(periods, stalled, timeline.first_counted, timeline.end_counted);
  return found;
}

}  // namespace unidle::account
