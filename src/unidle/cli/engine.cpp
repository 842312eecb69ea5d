#include "unidle/cli/engine.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::cli {

std::string engine_program() {
  std::string program = (program_folder() / "unidle-train").string();
  if (!std::filesystem::exists(program)) {
    throw Error(ErrorCode::kMissing, program, "the training engine was not built",
                "./dev build makes it; it needs torch, which ./dev setup installs");
  }
  return program;
}

int become_engine(const std::vector<std::string>& arguments) {
  const std::string program = engine_program();
  std::vector<char*> argv = {const_cast<char*>("unidle-train")};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  throw system_error(ErrorCode::kChild, program, "cannot be started", errno);
}

}  // namespace unidle::cli
