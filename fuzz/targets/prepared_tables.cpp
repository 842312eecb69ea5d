// Tables that workloads are prepared from: daily measurements, and ratings in three files that "==" lines part. The
// first byte chooses.
#include <cmath>
#include "fuzz.h"
#include "workloads/recsys/ratings.h"
#include "workloads/recsys/table_files.h"
#include "workloads/timeseries/daily.h"

namespace unidle::fuzz::targets {

namespace {

void read_daily_table(std::string_view bytes) {
  using namespace workloads::timeseries;
  const Daily daily = read_daily(put("daily.csv", bytes));
  require(daily.days > 0 && daily.names.size() == daily.columns.size());
  for (const std::vector<float>& column : daily.columns) {
    require(static_cast<std::int64_t>(column.size()) == daily.days);
    for (const float value : column) {
      require(std::isfinite(value));
    }
  }
}

void read_rating_files(std::string_view bytes) {
  using namespace workloads::recsys;
  for (const char* name : {"ratings/ml-100k.user", "ratings/ml-100k.item", "ratings/ml-100k.inter"}) {
    const auto [text, rest] = split(bytes, "==\n");
    put(name, text);
    bytes = rest;
  }
  const Ratings ratings = read_ratings(scratch_folder() / "ratings");
  const std::filesystem::path folder = scratch_folder() / "ratings/table";
  std::filesystem::remove_all(folder);
  make_folders(folder);
  require(write_ratings(ratings, folder, 1) == static_cast<std::int64_t>(ratings.ratings.size()));
  may_refuse([&] { require(!feature_names(folder, "a.yaml").empty()); });
}

void run_prepared_tables(std::string_view bytes) {
  if (!bytes.empty()) {
    may_refuse([&] { (bytes[0] & 1) == 0 ? read_daily_table(bytes.substr(1)) : read_rating_files(bytes.substr(1)); });
  }
}

}  // namespace

const Target& prepared_tables() {
  static const Target kTarget = {"prepared_tables", run_prepared_tables};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
