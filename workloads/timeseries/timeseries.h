// The workload `timeseries`: forecasts tomorrow's value of a daily measurement.
#pragma once

#include <filesystem>
#include <string>

#include "unidle/train/workload.h"

namespace unidle::workloads::timeseries {

const train::WorkloadKind& timeseries();

/// Computes features of a daily table and writes them to `folder`: train.npy and validation.npy (float32 [days,
/// features], scaled by the training days' mean and deviation; the last fifth of the days is for validation) and
/// series.json with {"source", "target", "mean", "deviation" (of the target), "features": [names]}. `source`: a CSV
/// file for read_daily(), or empty for Seattle's weather from vega_datasets. The target is pm2.5 or else temp_max when
/// present, otherwise the first numeric column. Atomic. Returns a description of the result. Throws kMissing when the
/// package is not found, and what read_daily() throws.
std::string prepare_series(const std::filesystem::path& folder, const std::filesystem::path& source);

}  // namespace unidle::workloads::timeseries
