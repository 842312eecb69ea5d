#include "unidle/report/page/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "unidle/experiment/parity.h"
#include "unidle/report/learning.h"

namespace unidle::report {

namespace {

constexpr std::size_t kMostPoints = 500;
constexpr std::size_t kMostThroughputBins = 240;
constexpr std::size_t kStepsPerBin = 3;  // fewer would draw the scatter of single steps
constexpr double kLeastTraining = 0.2;   // share of an interval below which it says nothing of training
constexpr std::size_t kMostDots = 40;

Line as_line(const account::Curve& curve) {
  Line line;
  for (const account::CurvePoint& point : curve) {
    line.emplace_back(point.samples, point.value);
  }
  return line;
}

/// Samples and seconds of training in equal intervals of the run.
struct TrainingBins {
  double width;
  std::vector<double> samples;
  std::vector<double> seconds;

  std::size_t of(double at) const {
    return static_cast<std::size_t>(std::clamp(std::floor(at / width), 0.0, static_cast<double>(samples.size()) - 1));
  }
  void add(double from, double to, double of_samples) {
    for (std::size_t i = of(from); i <= of(to); ++i) {
      const double begin = static_cast<double>(i) * width;
      const double overlap = std::max(0.0, std::min(to, begin + width) - std::max(from, begin));
      samples[i] += of_samples * overlap / (to - from);
      seconds[i] += overlap;
    }
  }
};

}  // namespace

Line thinned(const Line& points, std::size_t most) {
  if (points.size() <= most || most == 0) {
    return points;
  }
  const double from = points.front().first;
  const double width = (points.back().first - from) / static_cast<double>(most);
  Line out;
  for (std::size_t i = 0; i < points.size();) {
    const double bin = width > 0 ? std::floor((points[i].first - from) / width) : 0;
    double x = 0;
    double y = 0;
    std::size_t count = 0;
    for (; i < points.size() && (width > 0 ? std::floor((points[i].first - from) / width) : 0) <= bin; ++i, ++count) {
      x += points[i].first;
      y += points[i].second;
    }
    out.emplace_back(x / static_cast<double>(count), y / static_cast<double>(count));
  }
  return out;
}

Line series_line(const Shown& shown, std::string_view name, double scale, double unit_s, std::string_view subject) {
  Line line;
  for (const auto& [series, points] : shown.run->series) {
    if (series.name != name || (!subject.empty() && series.subject != subject)) {
      continue;
    }
    for (const auto& point : points) {
      line.emplace_back(shown.since_start(point.t_ns) / unit_s, point.value * scale);
    }
  }
  std::stable_sort(line.begin(), line.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return thinned(line, kMostPoints);
}

Line throughput_line(const Shown& shown, double length_s, double unit_s) {
  const auto& periods = shown.account.periods;
  const double end = std::min(length_s, shown.account.timeline.wall_s());
  const std::size_t count = std::clamp<std::size_t>(periods.size() / kStepsPerBin, 1, kMostThroughputBins);
  TrainingBins all{end / static_cast<double>(count), std::vector<double>(count), std::vector<double>(count)};
  if (periods.empty() || !(all.width > 0)) {
    return {};
  }
  for (const account::Period& period : periods) {
    const double from = shown.since_start(period.begin_ns);
    if (period.wall_s > 0) {  // a step without duration cannot be placed
      all.add(from, from + period.wall_s, period.samples);
    }
  }
  Line line;
  for (std::size_t i = 0; i < count; ++i) {
    const bool trained = all.seconds[i] > kLeastTraining * all.width;
    line.emplace_back((static_cast<double>(i) + 0.5) * all.width / unit_s,
                      trained ? all.samples[i] / all.seconds[i] : std::numeric_limits<double>::quiet_NaN());
  }
  return line;
}

PlotLine loss_line(const Shown& shown) {
  PlotLine line{shown.run->name, shown.css};
  const account::Curve& raw = shown.account.losses.points;
  if (!raw.empty()) {
    const double width = (raw.back().samples - raw.front().samples) / 25;
    line.points = thinned(as_line(experiment::smooth(raw, width)), kMostPoints);
    line.raw = thinned(as_line(raw), kMostPoints);
  }
  return line;
}

PlotLine metric_line(const Shown& shown, const std::string& name) {
  PlotLine line{shown.run->name, shown.css};
  if (const auto found = shown.run->metrics.find(name); found != shown.run->metrics.end()) {
    line.points = thinned(as_line(account::metric_curve(found->second)), kMostPoints);
  }
  line.dots = line.points.size() <= kMostDots;
  return line;
}

std::vector<std::string> metric_names(const std::vector<Shown>& runs) {
  std::set<std::string> names;
  for (const Shown& shown : runs) {
    for (const auto& [name, values] : shown.run->metrics) {
      if (name != "loss" && !values.empty()) {
        names.insert(name);
      }
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace unidle::report
