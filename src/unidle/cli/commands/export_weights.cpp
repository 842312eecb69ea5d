#include "unidle/cli/engine.h"
#include "unidle/cli/subcommand.h"

namespace unidle::cli::commands {

const Subcommand& export_weights() {
  static const Subcommand kExport = {
      .name = "export",
      .summary = "Write the weights of a checkpoint of the engine as files that Python reads",
      .examples = "",
      .setup = [](CLI::App& app) -> std::function<int()> {
        app.prefix_command();
        app.set_help_flag();  // unidle-train answers --help
        return [&app] {
          std::vector<std::string> arguments = app.remaining();
          arguments.insert(arguments.begin(), "export");
          return become_engine(arguments);
        };
      },
  };
  return kExport;
}

}  // namespace unidle::cli::commands
