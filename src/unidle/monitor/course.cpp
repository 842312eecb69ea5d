#include "unidle/monitor/course.h"

#include <optional>

#include "unidle/base/clock.h"

namespace unidle::monitor {

Course::Point Course::mean(const std::vector<Point>& points) {
  Point made;
  std::map<std::string, std::size_t> counts;
  for (const Point& point : points) {
    made.t_s += point.t_s / static_cast<double>(points.size());
    for (const auto& [key, value] : point.values) {
      made.values[key] += value;
      ++counts[key];
    }
  }
  for (auto& [key, value] : made.values) {
    value /= static_cast<double>(counts.at(key));
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
    put("run.loss", snapshot.run->loss);
  }
  pending_.push_back(std::move(point));
  if (pending_.size() < each_) {
    return;
  }
  points_.push_back(mean(pending_));
  pending_.clear();
  if (points_.size() >= kMostPoints) {
    std::vector<Point> fewer;
    for (std::size_t i = 0; i + 1 < points_.size(); i += 2) {
      fewer.push_back(mean({points_[i], points_[i + 1]}));
    }
    points_ = std::move(fewer);
    each_ *= 2;
  }
}

Course::Line Course::line(const std::string& key) const {
  Line line;
  const double newest_s = points_.empty() ? 0 : points_.back().t_s;
  for (const Point& point : points_) {
    if (const auto value = point.values.find(key); value != point.values.end()) {
      line.emplace_back(point.t_s - newest_s, value->second);
    }
  }
  return line;
}

double Course::length_s() const { return points_.empty() ? 0 : points_.back().t_s - points_.front().t_s; }

}  // namespace unidle::monitor
