#include "unidle/account/knob_readings.h"

#include <gtest/gtest.h>

namespace unidle::account {
namespace {

TEST(KnobReadings, HoldBothSidesOfAKnob) {
  RunData run;
  run.settings = {{"loader.workers", "2", "configured", "train.yaml:3"},
                  {"loader.workers", "4", "configured", "train.yaml:9"},
                  {"loader.workers", "num_workers: 4", "written", "train.yaml:9"},
                  {"batch.size", "8", "configured", "--batch-size"},
                  {"batch.size", "bs: 16", "written", "train.yaml:2"},
                  {"loader.workers", "0", "effective", ""},
                  {"loader.workers", "0", "environment", "NUM_WORKERS"},
                  {"loader.workers", "", "unnamed", "n_workers"},
                  {"device", "0", "environment", "CUDA_VISIBLE_DEVICES"}};
  const KnobReadings readings = knob_readings(run);
  ASSERT_EQ(readings.size(), 3u);
  const KnobReading& workers = readings.at("loader.workers");
  EXPECT_EQ(workers.configured, "4");
  EXPECT_EQ(workers.configured_at, "train.yaml:9");
  EXPECT_EQ(workers.written, "num_workers: 4");
  EXPECT_EQ(readings.at("batch.size").written, "") << "the command line overrides the file";
  EXPECT_EQ(workers.effective, "0");
  EXPECT_EQ(workers.environment.front().first, "NUM_WORKERS");
  EXPECT_EQ(workers.unnamed_key, "n_workers");
  EXPECT_TRUE(workers.has_value());
  EXPECT_FALSE(readings.at("device").has_value()) << "a variable is no value of the knob";
}

}  // namespace
}  // namespace unidle::account
