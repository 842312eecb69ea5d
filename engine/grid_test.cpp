#include "engine/grid.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "unidle/base/error.h"

namespace unidle::engine {
namespace {

using ::testing::ElementsAre;

TEST(Grid, IsAKeyWithValues) {
  const GridAxis axis = GridAxis::parse("model.width=64,128");
  EXPECT_EQ(axis.key, "model.width");
  EXPECT_THAT(axis.values, ElementsAre("64", "128"));
  EXPECT_THAT(GridAxis::parse("seed=4").values, ElementsAre("4"));
  for (const char* wrong : {"", "=1", "model.width", "model.width=", "seed=1,,2", "seed=1,", "seed=1,2,1"}) {
    EXPECT_THROW(GridAxis::parse(wrong), Error) << wrong;
  }
}

TEST(Grid, OfSeveralKeysHasEachCombination) {
  const Grid grid = Grid::parse({"model.width=64,128", "input.size=30,60"});
  EXPECT_THAT(grid.points(), ElementsAre(ElementsAre("64", "30"), ElementsAre("64", "60"), ElementsAre("128", "30"),
                                         ElementsAre("128", "60")));
  EXPECT_THROW(Grid::parse({"seed=1,2", "seed=3"}), Error);
  EXPECT_THROW(grid.refuse_fixed({"batch.size=4", "input.size=7"}), Error);
  EXPECT_NO_THROW(grid.refuse_fixed({"batch.size=4"}));
}

TEST(Grid, HasARowForEachValue) {
  train::Summary small;
  small.samples_per_s = 200;
  small.loss_last = 0.5;
  small.metric = {{"rmse", 3.25}};
  train::Summary large = small;
  large.loss_last.reset();
  const Grid grid = Grid::parse({"model.width=64,128"});
  const GridRuns runs = {{{"64"}, small}, {{"128"}, large}};
  EXPECT_EQ(to_text(grid, runs),
            "model.width  samples/s  loss  rmse\n"
            "         64        200   0.5  3.25\n"
            "        128        200     -  3.25\n");
  const auto document = nlohmann::json::parse(to_json(grid, runs));
  EXPECT_EQ(document["grid"], nlohmann::json({"model.width"}));
  EXPECT_EQ(document["runs"][1]["settings"]["model.width"], "128");
  EXPECT_EQ(document["runs"][0]["metric"]["rmse"], 3.25);
}

TEST(Grid, TellsOfRunsThatFailedBesideTheOthers) {
  train::Summary summary;
  summary.samples_per_s = 200;
  summary.loss_last = 0.5;
  const Grid grid = Grid::parse({"input.size=5,900"});
  const GridRuns runs = {{{"900"}, std::nullopt, "too long"}, {{"5"}, summary}};
  EXPECT_EQ(to_text(grid, runs),
            "input.size  samples/s  loss\n"
            "         5        200   0.5\n"
            "failed with input.size=900: too long\n");
  const auto document = nlohmann::json::parse(to_json(grid, runs));
  EXPECT_EQ(document["runs"][0], nlohmann::json::parse(R"({"settings": {"input.size": "900"}, "error": "too long"})"));
}

}  // namespace
}  // namespace unidle::engine
