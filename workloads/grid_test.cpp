#include "workloads/grid.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "unidle/base/error.h"

namespace unidle::workloads {
namespace {

using ::testing::ElementsAre;

TEST(Grid, IsAKeyWithValues) {
  const Grid grid = Grid::parse("model.width=64,128");
  EXPECT_EQ(grid.key, "model.width");
  EXPECT_THAT(grid.values, ElementsAre("64", "128"));
  EXPECT_THAT(Grid::parse("seed=4").values, ElementsAre("4"));
  for (const char* wrong : {"", "=1", "model.width", "model.width=", "seed=1,,2", "seed=1,"}) {
    EXPECT_THROW(Grid::parse(wrong), Error) << wrong;
  }
}

TEST(Grid, HasARowForEachValue) {
  train::Summary small;
  small.samples_per_s = 200;
  small.loss_last = 0.5;
  small.metric = {{"rmse", 3.25}};
  train::Summary large = small;
  large.loss_last.reset();
  const Grid grid{"model.width", {"64", "128"}};
  EXPECT_EQ(to_text(grid, {{"64", small}, {"128", large}}),
            "model.width  samples/s  loss  rmse\n"
            "         64        200   0.5  3.25\n"
            "        128        200     -  3.25\n");
  const auto document = nlohmann::json::parse(to_json(grid, {{"64", small}, {"128", large}}));
  EXPECT_EQ(document["grid"], "model.width");
  EXPECT_EQ(document["runs"][1]["value"], "128");
  EXPECT_EQ(document["runs"][0]["metric"]["rmse"], 3.25);
}

}  // namespace
}  // namespace unidle::workloads
