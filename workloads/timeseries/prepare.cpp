// Prepares the workload's data from a daily table.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "workloads/common/npy_file.h"
#include "workloads/common/package_files.h"
#include "workloads/common/whole_folder.h"
#include "workloads/timeseries/features.h"
#include "workloads/timeseries/timeseries.h"

namespace unidle::workloads::timeseries {

namespace {

constexpr double kShareOfTraining = 0.8;
constexpr std::int64_t kFewestDays = 200;

std::filesystem::path seattle() {
  if (auto found = find_package_file("vega_datasets/_data/seattle-weather.csv")) {
    return *found;
  }
  throw Error(ErrorCode::kMissing, "vega_datasets", "its weather of Seattle was not found",
              "python3 -m pip install vega_datasets, or name a daily table: prepare.source=FILE.csv");
}

std::string target_of(const Daily& daily) {
  for (const char* wanted : {"pm2.5", "temp_max"}) {
    if (std::find(daily.names.begin(), daily.names.end(), wanted) != daily.names.end()) {
      return wanted;
    }
  }
  return daily.names.front();
}

}  // namespace

std::string prepare_series(const std::filesystem::path& folder, const std::filesystem::path& given) {
  const std::filesystem::path source = given.empty() ? seattle() : given;
  const Daily daily = read_daily(source);
  if (daily.days < kFewestDays) {
    throw Error(ErrorCode::kInput, source.string(),
                fmt::format("has {} days; expected {} or more", daily.days, kFewestDays));
  }
  const std::string target = target_of(daily);
  const Features features = make_features(daily, target);
  const std::int64_t days = features.values.size(0);
  const auto training = static_cast<std::int64_t>(kShareOfTraining * static_cast<double>(days));
  const at::Tensor mean = features.values.narrow(0, 0, training).mean(0);
  const at::Tensor deviation = features.values.narrow(0, 0, training).std(0, false);
  // A column that is constant in training has no information: it becomes 0.
  const at::Tensor scaled = (features.values - mean) / at::where(deviation > 0, deviation, at::ones_like(deviation));
  const nlohmann::json about = {{"source", source.string()},
                                {"target", target},
                                {"mean", mean[0].item<double>()},
                                {"deviation", deviation[0].item<double>()},
                                {"features", features.names}};
  make_whole_folder(folder, [&](const std::filesystem::path& made) {
    write_npy(made / "train.npy", scaled.narrow(0, 0, training));
    write_npy(made / "validation.npy", scaled.narrow(0, training, days - training));
    write_file_atomic(made / "series.json", about.dump(2) + "\n");
  });
  return fmt::format("{} training and {} validation days of {} features in {}, to tell {}, from {} ({} values filled)",
                     training, days - training, features.names.size(), folder.string(), target, source.string(),
                     daily.filled);
}

}  // namespace unidle::workloads::timeseries
