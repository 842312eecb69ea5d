#include "unidle/account/readings.h"

#include <algorithm>

#include "unidle/base/stats.h"

namespace unidle::account {

const std::vector<record::Point>* Readings::find(std::string_view name, const std::string* subject) const {
  const auto found = std::find_if(run_.series.begin(), run_.series.end(), [&](const auto& one) {
    return one.first.name == name && (subject == nullptr || one.first.subject == *subject);
  });
  return found == run_.series.end() ? nullptr : &found->second;
}

std::vector<double> Readings::training(std::string_view name, const std::string* subject) const {
  std::vector<double> values;
  const std::vector<record::Point>* points = find(name, subject);
  if (points == nullptr || timeline_.steps.empty()) {
    return values;
  }
  const std::int64_t from_ns = timeline_.steps[timeline_.first_counted].t_ns;
  for (const record::Point& point : *points) {
    if (point.t_ns >= from_ns && timeline_.training.contains(point.t_ns)) {
      values.push_back(point.value);
    }
  }
  if (values.size() > 1) {
    values.erase(values.begin());  // a mean since the previous reading, which includes warm-up
  }
  return values;
}

std::optional<double> Readings::mean(std::string_view name, const std::string* subject) const {
  const std::vector<double> values = training(name, subject);
  return values.empty() ? std::nullopt : std::optional(unidle::mean(values));
}

std::optional<double> Readings::most(std::string_view name, const std::string* subject) const {
  const std::vector<double> values = training(name, subject);
  return values.empty() ? std::nullopt : std::optional(*std::max_element(values.begin(), values.end()));
}

std::optional<double> mean_over_run(const RunData& run, std::string_view name) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto* points : run.points(name)) {
    for (const record::Point& point : *points) {
      sum += point.value;
      ++count;
    }
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

std::optional<double> max_over_run(const RunData& run, std::string_view name) {
  std::optional<double> most;
  for (const auto* points : run.points(name)) {
    for (const record::Point& point : *points) {
      most = std::max(most.value_or(point.value), point.value);
    }
  }
  return most;
}

std::vector<std::string> Readings::subjects(std::string_view name) const {
  std::vector<std::string> subjects;
  for (const auto& [series, points] : run_.series) {
    if (series.name == name) {
      subjects.push_back(series.subject);
    }
  }
  return subjects;
}

}  // namespace unidle::account
