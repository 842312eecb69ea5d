#include "workloads/timeseries/features.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace unidle::workloads::timeseries {

namespace {

constexpr std::int64_t kLags[] = {1, 2, 3, 7, 14};
constexpr std::int64_t kMeans[] = {3, 7, 14, 30};
constexpr std::int64_t kDeviations[] = {7, 30};
constexpr std::int64_t kOtherMeans[] = {3, 7, 14};

class Columns {
 public:
  explicit Columns(std::int64_t days) : days_(days) {}

  /// `values`: [days]; the days of history are dropped.
  void add(std::string name, const at::Tensor& values) {
    names_.push_back(std::move(name));
    columns_.push_back(values.narrow(0, kHistory, days_ - kHistory));
  }
  /// Positions on a circle of `period` days, as two features.
  void add_circle(const std::string& name, const at::Tensor& position, double period) {
    const at::Tensor angle = position * (2 * std::numbers::pi / period);
    add(name + "_sin", angle.sin());
    add(name + "_cos", angle.cos());
  }
  Features finish() const { return {names_, at::stack(columns_, 1).to(at::kFloat).contiguous()}; }

 private:
  std::int64_t days_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> columns_;
};

at::Tensor as_tensor(const std::vector<float>& values) {
  return at::tensor(at::ArrayRef<float>(values)).to(at::kDouble);
}

at::Tensor lagged(const at::Tensor& values, std::int64_t days) { return values.roll({days}, {0}); }

/// [days, window]: each day and the window - 1 before it; the first days wrap around, and are dropped later.
at::Tensor windows(const at::Tensor& values, std::int64_t window) {
  std::vector<at::Tensor> shifted;
  for (std::int64_t back = 0; back < window; ++back) {
    shifted.push_back(lagged(values, back));
  }
  return at::stack(shifted, 1);
}

void add_calendar(Columns& columns, const Daily& daily) {
  std::vector<float> day_of_year;
  std::vector<float> month;
  std::vector<float> weekday;
  for (std::int64_t day = 0; day < daily.days; ++day) {
    const std::chrono::sys_days date = daily.first_day + std::chrono::days(day);
    const std::chrono::year_month_day parts(date);
    const std::chrono::sys_days new_year = parts.year() / std::chrono::January / 1;
    day_of_year.push_back(static_cast<float>((date - new_year).count()));
    month.push_back(static_cast<float>(static_cast<unsigned>(parts.month()) - 1));
    weekday.push_back(static_cast<float>(std::chrono::weekday(date).c_encoding()));
  }
  columns.add_circle("day_of_year", as_tensor(day_of_year), 365.25);
  columns.add_circle("month", as_tensor(month), 12);
  columns.add_circle("weekday", as_tensor(weekday), 7);
}

void add_history(Columns& columns, const std::string& name, const at::Tensor& values) {
  for (const std::int64_t days : kLags) {
    columns.add(fmt::format("{}_{}_days_ago", name, days), lagged(values, days));
  }
  for (const std::int64_t days : kMeans) {
    columns.add(fmt::format("{}_mean_{}", name, days), windows(values, days).mean(1));
  }
  for (const std::int64_t days : kDeviations) {
    columns.add(fmt::format("{}_deviation_{}", name, days), windows(values, days).std(1, false));
  }
}

void add_other(Columns& columns, const std::string& name, const at::Tensor& values) {
  for (const std::int64_t days : kOtherMeans) {
    columns.add(fmt::format("{}_mean_{}", name, days), windows(values, days).mean(1));
  }
  columns.add(name + "_change", values - lagged(values, 1));
}

}  // namespace

Features make_features(const Daily& daily, const std::string& target) {
  Columns columns(daily.days);
  const std::size_t told = daily.column(target);
  columns.add(target, as_tensor(daily.columns[told]));
  for (std::size_t column = 0; column < daily.names.size(); ++column) {
    if (column != told) {
      columns.add(daily.names[column], as_tensor(daily.columns[column]));
    }
  }
  for (const auto& [text, days] : daily.is) {
    columns.add("is_" + text, as_tensor(std::vector<float>(days.begin(), days.end())));
  }
  add_calendar(columns, daily);
  add_history(columns, target, as_tensor(daily.columns[told]));
  for (std::size_t column = 0; column < daily.names.size(); ++column) {
    if (column != told) {
      add_other(columns, daily.names[column], as_tensor(daily.columns[column]));
    }
  }
  return columns.finish();
}

}  // namespace unidle::workloads::timeseries
