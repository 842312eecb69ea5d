#include "unidle/cli/engine.h"
#include "unidle/cli/subcommand.h"

namespace unidle::cli::commands {

const Subcommand& train() {
  static const Subcommand kTrain = {
      .name = "train",
      .summary = "Train a workload with the C++ engine",
      .examples = "",
      .setup = [](CLI::App& app) -> std::function<int()> {
        app.prefix_command();
        app.set_help_flag();  // unidle-train answers --help
        return [&app] { return become_engine(app.remaining()); };
      },
  };
  return kTrain;
}

}  // namespace unidle::cli::commands
