// The workload `timeseries`: tomorrow's value of a daily measurement.
#pragma once

#include <filesystem>
#include <string>

#include "unidle/train/workload.h"

namespace unidle::workloads::timeseries {

const train::WorkloadKind& timeseries();

/// Makes features of a daily table and writes them to `folder`: train.npy and validation.npy (float32 [days, features],
/// scaled by the training days' mean and deviation; the last fifth of the days is for validation) and series.json with
/// {"source", "target", "mean", "deviation" (of the target), "features": [names]}. `source`: a CSV file as read_daily()
/// takes it, or empty for Seattle's weather out of vega_datasets. What is told is the first of pm2.5 and temp_max that
/// is there, else the first column of numbers. All or nothing. Returns what was made. Throws kMissing when the package
/// is not found, and what read_daily() throws.
std::string prepare_series(const std::filesystem::path& folder, const std::filesystem::path& source);

}  // namespace unidle::workloads::timeseries
