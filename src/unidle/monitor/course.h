// The figures of a whole session, for curves.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "unidle/monitor/snapshot.h"

namespace unidle::monitor {

/// Keeps the whole session in bounded memory: when there are too many points, each becomes the mean of two. Not
/// thread-safe.
class Course {
 public:
  using Line = std::vector<std::pair<double, double>>;  // seconds before the newest reading (0 or negative), value

  static constexpr std::size_t kMostPoints = 1200;

  void add(const Snapshot& snapshot);
  /// `key`: "cpu", "gpu0", "gpu0.sm_activity", "run.samples_per_s", "run.steps_per_s", "run.input_share", "run.loss";
  /// shares are 0..1. Not a number where it was not read; empty when it never was.
  Line line(const std::string& key) const;
  /// Seconds from the first reading to the newest.
  double length_s() const;

 private:
  struct Point {
    double t_s = 0;
    std::map<std::string, double> values;
  };
  struct Sum {
    double t_s = 0;
    std::size_t points = 0;
    std::map<std::string, std::pair<double, std::size_t>> values;

    void add(const Point& point);
    Point mean() const;  // REQUIRES: points > 0
  };

  std::vector<Point> points_;
  Sum pending_;           // of the next point
  std::size_t each_ = 1;  // readings in a point
  double first_s_ = 0, newest_s_ = 0;
};

}  // namespace unidle::monitor
