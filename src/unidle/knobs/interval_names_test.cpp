#include "unidle/knobs/interval_names.h"

#include <gtest/gtest.h>

namespace unidle::knobs {
namespace {

TEST(IntervalNames, ByTheirWords) {
  for (const char* name : {"EVAL_EVERY", "eval_interval", "--val-freq", "valCheckInterval", "evaluate_every_n_steps",
                           "test_interval", "validation_period", "check_val_every_n_epoch"}) {
    EXPECT_TRUE(names_interval_of_validation(name)) << name;
  }
  for (const char* name : {"eval_iters", "eval_steps", "log_interval", "save_every", "val_split",
                           "eval_batch_interval_size", "interval", "test", "latest_interval"}) {
    EXPECT_FALSE(names_interval_of_validation(name)) << name;
  }
}

TEST(IntervalNames, StepsMayBeALength) {
  for (const char* name : {"eval_steps", "--test-steps", "EVAL_EVERY"}) {
    EXPECT_TRUE(may_name_interval_of_validation(name)) << name;
  }
  for (const char* name : {"eval_batch_size", "steps", "max_steps", "eval", "test_epochs"}) {
    EXPECT_FALSE(may_name_interval_of_validation(name)) << name;
  }
}

}  // namespace
}  // namespace unidle::knobs
