#include "unidle/experiment/configurations.h"

#include <gmock/gmock.h>

#include "unidle/base/error.h"

namespace unidle::experiment {
namespace {

using ::testing::ElementsAre;

TEST(Configurations, TheCommandTakesTheConfiguration) {
  ConfigurationTurns turns;
  turns.command = {"python", "train.py", "--config={config}"};
  EXPECT_THAT(command_for(turns, "/x/a.yaml"), ElementsAre("python", "train.py", "--config=/x/a.yaml"));
  turns.command = {"python", "train.py"};
  EXPECT_THROW(command_for(turns, "/x/a.yaml"), Error);
  turns.command.clear();
  turns.train_program = "/nowhere/unidle-train";
  EXPECT_THROW(command_for(turns, "/x/a.yaml"), Error);
}

}  // namespace
}  // namespace unidle::experiment
