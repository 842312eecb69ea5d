// `unidle train`: becomes unidle-train, which lies beside this program and links torch.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/cli/subcommand.h"

namespace unidle::cli::commands {

namespace {

int become_trainer(const std::vector<std::string>& arguments) {
  const std::string program = (program_folder() / "unidle-train").string();
  if (!std::filesystem::exists(program)) {
    throw Error(ErrorCode::kMissing, program, "the training engine was not built",
                "./dev build makes it; it needs torch, which ./dev setup installs");
  }
  std::vector<char*> argv = {const_cast<char*>("unidle-train")};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  throw system_error(ErrorCode::kChild, program, "cannot be started", errno);
}

std::function<int()> setup(CLI::App& app) {
  app.prefix_command();
  app.set_help_flag();  // unidle-train answers --help
  return [&app] { return become_trainer(app.remaining()); };
}

}  // namespace

const Subcommand& train() {
  static const Subcommand kTrain = {
      .name = "train",
      .summary = "Train a workload with the C++ engine",
      .examples = "",
      .setup = setup,
  };
  return kTrain;
}

}  // namespace unidle::cli::commands
