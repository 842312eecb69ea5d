// The model's features of each day.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "workloads/timeseries/daily.h"

namespace unidle::workloads::timeseries {

struct Features {
  std::vector<std::string> names;  // the first is the target
  at::Tensor values;               // float32 [days, features], unscaled
};

/// The features of a day use that day and earlier ones: all measurements, texts as 0 or 1, the calendar as circles (day
/// of the year, month, weekday), the target 1, 2, 3, 7 and 14 days ago, its mean over 3, 7, 14 and 30 days and
/// deviation over 7 and 30, and for each other measurement the mean over 3, 7 and 14 days and the change since the day
/// before. With m measurements and t texts these are 17 + m + t + 4 (m - 1) columns: 38 for Seattle's 4 and 5. The
/// first 30 days, which have no history, are dropped.
Features make_features(const Daily& daily, const std::string& target);

/// Days at the start that make_features() drops.
constexpr std::int64_t kHistory = 30;

}  // namespace unidle::workloads::timeseries
