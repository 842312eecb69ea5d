#include "unidle/monitor/course.h"

#include <cmath>
#include <limits>
#include <optional>

#include "unidle/base/clock.h"

namespace unidle::monitor {

void Course::Sum::add(const Point& point) {
  t_s += point.t_s;
  ++points;
  for (const auto& [key, value] : point.values) {
    auto& [sum, count] = values[key];
    sum += value;
    ++count;
  }
}

Course::Point Course::Sum::mean() const {
  Point made;
  made.t_s = t_s / static_cast<double>(points);
  for (const auto& [key, value] : values) {
    made.values[key] = value.first / static_cast<double>(value.second);
  }
  return made;
}

void Course::add(const Snapshot& snapshot) {
  Point point;
  point.t_s = seconds(snapshot.t_ns);
  const auto put = [&](const std::string& key, const std::optional<double>& value) {
    if (value) {
      point.values[key] = *value;
    }
  };
  put("cpu", snapshot.cpu_share());
  for (const GpuNow& gpu : snapshot.gpus) {
    put(gpu.subject, gpu.reading.utilisation);
    put(gpu.subject + ".sm_activity", gpu.reading.sm_activity);
  }
  if (snapshot.run) {
    put("run.samples_per_s", snapshot.run->samples_per_s);
    put("run.steps_per_s", snapshot.run->steps_per_s);
    put("run.input_share", snapshot.run->input_share);
    if (snapshot.run->loss && std::isfinite(*snapshot.run->loss)) {
      put("run.loss", snapshot.run->loss);
    }
  }
  newest_s_ = point.t_s;
  if (points_.empty() && pending_.points == 0) {
    first_s_ = point.t_s;
  }
  pending_.add(point);
  if (pending_.points < each_) {
    return;
  }
  points_.push_back(pending_.mean());
  pending_ = {};
  if (points_.size() >= kMostPoints) {
    std::vector<Point> fewer;
    for (std::size_t i = 0; i + 1 < points_.size(); i += 2) {
      Sum both;
      both.add(points_[i]);
      both.add(points_[i + 1]);
      fewer.push_back(both.mean());
    }
    points_ = std::move(fewer);
    each_ *= 2;
  }
}

Course::Line Course::line(const std::string& key) const {
  std::vector<Point> points = points_;
  if (pending_.points > 0) {
    points.push_back(pending_.mean());
  }
  Line line;
  bool some = false;
  for (const Point& point : points) {
    const auto value = point.values.find(key);
    some = some || value != point.values.end();
    line.emplace_back(point.t_s - newest_s_,
                      value != point.values.end() ? value->second : std::numeric_limits<double>::quiet_NaN());
  }
  return some ? line : Line{};
}

double Course::length_s() const { return newest_s_ - first_s_; }

}  // namespace unidle::monitor
