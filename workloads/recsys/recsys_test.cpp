#include "workloads/recsys/recsys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cmath>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/sources/table.h"
#include "workloads/recsys/model.h"
#include "workloads/recsys/ratings.h"
#include "workloads/recsys/table_files.h"
#include "workloads/testing/small_run.h"

namespace unidle::workloads::recsys {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Recsys : public ::testing::Test {
 protected:
  std::filesystem::path data() const { return folder_.path() / "data"; }
  void generate(std::int64_t rows = 1500) const {
    prepare_table(data(), {.source = "generated", .rows = rows, .parts = 3, .seed = 4});
  }
  std::vector<std::string> settings(std::vector<std::string> more) const {
    more.insert(more.begin(), {"data.folder=" + data().string(), "model.width=64", "batch.size=50",
                               "optimizer.lr=0.003", "validation.interval=0"});
    return more;
  }

  TemporaryFolder folder_;
};

TEST_F(Recsys, GeneratedTablesHaveKuaiRandsShape) {
  generate();
  const std::vector<std::string> names = feature_names(data(), "c.yaml");
  EXPECT_EQ(names.size(), 157U);
  EXPECT_THAT(names, ::testing::IsSupersetOf({"fans_user_num", "onehot_feat17", "video_play_cnt", "tab_14"}));
  const data::TableSource all({.paths = {(data() / "log.csv").string()},
                               .features = names,
                               .targets = {"play_time_ms", "is_click"},
                               .cache = (data() / "built").string()});
  EXPECT_EQ(all.items(), 1500);
  for (const data::TableColumn& column : all.columns()) {
    EXPECT_EQ(column.missing, 0) << column.name;
    EXPECT_NE(column.type, "text") << column.name;
  }
  EXPECT_TRUE(std::filesystem::exists(data() / "log_part3.csv"));
  const std::string before = read_file(data() / "log_part2.csv");
  generate();
  EXPECT_EQ(read_file(data() / "log_part2.csv"), before);
}

TEST_F(Recsys, Learns) {
  generate(4000);
  const train::Summary begin = train_small("recsys", settings({"train.samples=50"}));
  const train::Summary end = train_small("recsys", settings({"train.samples=16000"}));
  EXPECT_LT(end.loss_last, end.loss_first);
  EXPECT_LT(end.metric.at("rmse_log"), 0.8 * begin.metric.at("rmse_log"));
  EXPECT_LT(end.metric.at("log_loss"), begin.metric.at("log_loss"));
  EXPECT_GT(end.metric.at("auc"), 0.6);
  EXPECT_EQ(end.effective.at("model.width"), "64");
}

TEST_F(Recsys, WhatOnlySavesWaitingChangesNothing) {
  generate();
  const train::Summary plain =
      train_small("recsys", settings({"train.samples=1000", "validation.interval=0.1", "validation.batch=7"}));
  const train::Summary other = train_small(
      "recsys", settings({"train.samples=1000", "data.on_device=true", "metrics.interval=10", "loader.workers=2"}));
  EXPECT_EQ(plain.loss_last, other.loss_last);
  for (const char* name : {"rmse_log", "log_loss", "auc"}) {
    EXPECT_NEAR(plain.metric.at(name), other.metric.at(name), 1e-6) << name;
  }
}

TEST_F(Recsys, ResumesExactly) {
  generate();
  expect_resumes_exactly("recsys", settings({}), 1000, folder_.path() / "checkpoints");
}

TEST_F(Recsys, WithoutATableItSaysHowToMakeIt) {
  try {
    train_small("recsys", settings({}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
    EXPECT_THAT(error.hint(), HasSubstr("unidle-train recsys.yaml --prepare"));
  }
}

TEST_F(Recsys, AClickIsYesOrNo) {
  generate();
  const std::filesystem::path part = data() / "log_part1.csv";
  for (const std::string_view click : {"7", ""}) {
    std::string text = read_file(part);
    const std::size_t row = text.rfind('\n', text.find(",train,")) + 1;  // statistics use training rows only
    const std::size_t cell = text.find(',', text.find(',', row) + 1) + 1;
    text.replace(cell, text.find(',', cell) - cell, click);
    write_file_atomic(part, text);
    try {
      train_small("recsys", settings({}));
      FAIL() << click;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      EXPECT_THAT(error.what(), HasSubstr("is_click"));
    }
  }
}

Ratings two_viewers() {
  Ratings ratings;
  ratings.users = {{1, {24, "M", "artist"}}, {2, {50, "F", "writer"}}};
  ratings.items = {{10, {1995, {"Comedy"}}}, {11, {1999, {"Comedy", "Drama"}}}};
  for (std::int64_t item : {10, 11}) {
    ratings.ratings.push_back({1, item, 5, 881250949});
    ratings.ratings.push_back({2, item, 2, 881250949});
  }
  return ratings;
}

// The label must not leak into the features: changing a row's rating does not change its features.
TEST_F(Recsys, ARowDoesNotSeeItsOwnRating) {
  const auto features_of = [&](int stars) {
    Ratings ratings = two_viewers();
    ratings.ratings[0].stars = stars;
    make_folders(folder_.path());
    write_ratings(ratings, folder_.path(), 1);
    const data::TableSource table({.paths = {(folder_.path() / "log_part1.csv").string()},
                                   .features = feature_names(folder_.path(), "c.yaml"),
                                   .cache = (folder_.path() / "built").string()});
    std::vector<float> row(static_cast<std::size_t>(table.features()));
    const std::vector<data::Places> places = {{std::as_writable_bytes(std::span(row))}};
    table.read({0, 0, 0}, places);
    return row;
  };
  EXPECT_EQ(features_of(1), features_of(5));
}

TEST_F(Recsys, RatingsAreReadAsThePackageHasThem) {
  write_file_atomic(
      folder_.path() / "ml-100k.user",
      "user_id:token\tage:token\tgender:token\toccupation:token\tzip_code:token\n7\t24\tM\tartist\t85711\n");
  write_file_atomic(folder_.path() / "ml-100k.item",
                    "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
                    "3\tToy Story\t1995\tAnimation Comedy\n");
  write_file_atomic(folder_.path() / "ml-100k.inter",
                    "user_id:token\titem_id:token\trating:float\ttimestamp:float\n7\t3\t4\t881250949\n");
  const Ratings ratings = read_ratings(folder_.path());
  ASSERT_EQ(ratings.ratings.size(), 1U);
  EXPECT_EQ(ratings.ratings[0].stars, 4);
  EXPECT_EQ(ratings.users.at(7).occupation, "artist");
  EXPECT_THAT(ratings.items.at(3).genres, ElementsAre("Animation", "Comedy"));
  for (const char* number : {"many", "1e300"}) {
    write_file_atomic(folder_.path() / "ml-100k.inter", fmt::format("a\tb\tc\td\n7\t3\t4\t{}\n", number));
    try {
      read_ratings(folder_.path());
      FAIL() << number;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      EXPECT_THAT(error.subject(), HasSubstr("ml-100k.inter:2"));
    }
  }
}

TEST(AreaUnderCurve, OfKnownOrders) {
  const std::array<double, 3> low = {4, 0, 0};
  const std::array<double, 3> high = {0, 0, 2};
  const std::array<double, 3> spread = {1, 1, 1};
  EXPECT_EQ(area_under_curve(high.data(), low.data(), 3), 1);
  EXPECT_EQ(area_under_curve(low.data(), high.data(), 3), 0);
  EXPECT_EQ(area_under_curve(spread.data(), spread.data(), 3), 0.5);
  EXPECT_NEAR(area_under_curve(high.data(), spread.data(), 3), 2.5 / 3, 1e-12);
  EXPECT_EQ(area_under_curve(high.data(), std::array<double, 3>{}.data(), 3), 0.5);
}

TEST(RecsysModel, HasTheParametersThatItsPageCounts) {
  Model model(157, 128);
  std::int64_t count = 0;
  for (const at::Tensor& parameter : model.parameters()) {
    count += parameter.numel();
  }
  EXPECT_EQ(count, 43330);
}

}  // namespace
}  // namespace unidle::workloads::recsys
