#include "workloads/timeseries/timeseries.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "workloads/common/npy_file.h"
#include "workloads/testing/small_run.h"
#include "workloads/timeseries/daily.h"
#include "workloads/timeseries/features.h"
#include "workloads/timeseries/model.h"

namespace unidle::workloads::timeseries {
namespace {

using ::testing::HasSubstr;

/// `days` days of a yearly wave with another measurement and a text; the tenth day has no wind.
std::string daily_csv(int days) {
  std::string text = "date,temp_max,wind,weather\n";
  const std::chrono::sys_days first = std::chrono::year(2020) / 1 / 1;
  for (int day = 0; day < days; ++day) {
    const std::chrono::year_month_day date(first + std::chrono::days(day));
    const double warm = 10 + 9 * std::sin(day * 0.0172) + 2 * std::sin(day * 1.7);
    text += fmt::format("{:04}-{:02}-{:02},{:.2f},{},{}\n", static_cast<int>(date.year()),
                        static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), warm,
                        day == 9 ? "" : std::to_string(1 + day % 5), day % 3 == 0 ? "rain" : "sun");
  }
  return text;
}

class TimeSeries : public ::testing::Test {
 protected:
  TimeSeries() { write_file_atomic(table(), daily_csv(400)); }

  std::filesystem::path table() const { return folder_.path() / "daily.csv"; }
  std::filesystem::path data() const { return folder_.path() / "data"; }
  std::vector<std::string> settings(std::vector<std::string> more) const {
    more.insert(more.begin(), {"data.folder=" + data().string(), "input.size=10", "model.width=16", "model.depth=2",
                               "batch.size=32", "optimizer.lr=0.005"});
    return more;
  }

  TemporaryFolder folder_;
};

TEST_F(TimeSeries, FeaturesAreOfTheDayAndThoseBefore) {
  const Daily daily = read_daily(table());
  EXPECT_EQ(daily.days, 400);
  EXPECT_EQ(daily.filled, 1);
  const Features features = make_features(daily, "temp_max");
  EXPECT_EQ(features.values.size(1), 17 + 2 + 2 + 4);
  EXPECT_EQ(features.values.size(0), 400 - kHistory);
  const auto value = [&](std::int64_t row, const std::string& name) {
    const auto column = std::find(features.names.begin(), features.names.end(), name) - features.names.begin();
    return features.values[row][column].item<double>();
  };
  const std::vector<float>& warm = daily.columns[0];
  EXPECT_NEAR(value(5, "temp_max"), warm[35], 1e-5);
  EXPECT_NEAR(value(5, "temp_max_7_days_ago"), warm[28], 1e-5);
  EXPECT_NEAR(value(5, "temp_max_mean_3"), (warm[35] + warm[34] + warm[33]) / 3, 1e-5);
  EXPECT_EQ(value(6, "is_rain"), 1);  // day 36
  EXPECT_EQ(value(5, "is_rain"), 0);
  EXPECT_NEAR(value(5, "wind_change"), 1 + 35 % 5 - (1 + 34 % 5), 1e-5);
}

TEST_F(TimeSeries, ATableOfSeattlesColumnsHas38Features) {
  Daily daily = read_daily(table());
  for (const char* name : {"precipitation", "temp_min"}) {
    daily.names.emplace_back(name);
    daily.columns.push_back(daily.columns[0]);
  }
  for (const char* weather : {"fog", "snow", "drizzle"}) {
    daily.is[weather] = daily.is["rain"];
  }
  EXPECT_EQ(make_features(daily, "temp_max").values.size(1), 38);
}

TEST_F(TimeSeries, LearnsFromWhatWasPrepared) {
  EXPECT_THAT(prepare_series(data(), table()), HasSubstr("296 training and 74 validation days"));
  const at::Tensor training = read_npy(data() / "train.npy");
  EXPECT_NEAR(training.select(1, 0).mean().item<double>(), 0, 1e-5);
  const train::Summary summary = train_small("timeseries", settings({"train.samples=1600"}));
  EXPECT_LT(summary.loss_last.value(), 0.3 * summary.loss_first.value());
  EXPECT_GT(summary.metric.at("rmse"), summary.metric.at("mae"));
  EXPECT_LT(summary.metric.at("mae"), 5);  // degrees; the wave is 9 high
  EXPECT_EQ(summary.effective.at("input.size"), "10");
  EXPECT_EQ(summary.effective.at("model.width"), "16");
  EXPECT_EQ(summary.effective.at("model.depth"), "2");
}

TEST_F(TimeSeries, WhatOnlySavesWaitingChangesNothing) {
  prepare_series(data(), table());
  const train::Summary plain = train_small("timeseries", settings({"train.samples=320", "validation.batch=1"}));
  const train::Summary other =
      train_small("timeseries", settings({"train.samples=320", "data.on_device=true", "metrics.interval=4",
                                          "validation.interval=0", "loader.workers=1"}));
  EXPECT_EQ(plain.loss_first, other.loss_first);
  EXPECT_EQ(plain.loss_last, other.loss_last);
  EXPECT_NEAR(plain.metric.at("rmse"), other.metric.at("rmse"), 1e-5);
}

TEST_F(TimeSeries, LearnsInBf16OnAnyProcessor) {
  prepare_series(data(), table());
  const train::Summary summary = train_small("timeseries", settings({"train.samples=640", "precision.amp=bf16"}));
  EXPECT_LT(summary.loss_last.value(), summary.loss_first.value());
  EXPECT_EQ(summary.effective.at("precision.amp"), "bf16");
}

TEST_F(TimeSeries, ResumesExactly) {
  prepare_series(data(), table());
  expect_resumes_exactly("timeseries", settings({}), 640, folder_.path() / "checkpoints");
}

TEST_F(TimeSeries, RefusesTablesThatAreNotDaily) {
  const auto refused = [&](const std::string& text, const std::string& place, const std::string& what) {
    const std::filesystem::path path = folder_.path() / "odd.csv";
    write_file_atomic(path, text);
    try {
      prepare_series(data(), path);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      EXPECT_EQ(error.subject(), path.string() + place);
      EXPECT_THAT(error.message(), HasSubstr(what));
    }
    EXPECT_FALSE(std::filesystem::exists(data()));
  };
  refused("day,x\n2020-01-01,1\n", ":1", "no column date");
  refused("date,x\n2020-01-02,1\n2020-01-01,1\n", ":3", "later than the row before");
  refused("date,x\n2020-02-30,1\n", ":2", "a day like");
  refused("date,x\n2020-01-01,1,2\n", ":2", "has 3 columns");
  refused("date,x\n2020-01-01,\n", ":2", "no values");
  refused("date,x\n2020-01-01,1\n", "", "has 1 days");
}

TEST_F(TimeSeries, WithoutASeriesItSaysHowToMakeIt) {
  try {
    train_small("timeseries", settings({}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
    EXPECT_THAT(error.hint(), HasSubstr("unidle-train timeseries.yaml --prepare"));
  }
}

TEST(Forecaster, HasTheParametersThatItsPageCounts) {
  Forecaster model({});
  std::int64_t count = 0;
  for (const at::Tensor& parameter : model.parameters()) {
    count += parameter.numel();
  }
  EXPECT_EQ(count, 251265);
}

}  // namespace
}  // namespace unidle::workloads::timeseries
