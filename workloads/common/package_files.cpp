#include "workloads/common/package_files.h"

#include <chrono>
#include <cstdlib>
#include <string>
#include <system_error>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/process.h"

namespace unidle::workloads {

namespace {

namespace fs = std::filesystem;

/// base/.venv/lib/python3.*/site-packages/FILE
std::optional<fs::path> in_environment(const fs::path& base, const fs::path& file) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(base / ".venv" / "lib", ignored)) {
    fs::path found = entry.path() / "site-packages" / file;
    if (fs::is_regular_file(found, ignored)) {
      return found;
    }
  }
  return std::nullopt;
}

std::optional<fs::path> above(fs::path folder, const fs::path& file) {
  while (true) {
    if (auto found = in_environment(folder, file)) {
      return found;
    }
    if (!folder.has_relative_path()) {
      return std::nullopt;
    }
    folder = folder.parent_path();
  }
}

std::optional<fs::path> of_python(const std::string& python, const fs::path& file) {
  try {
    Command command;
    command.argv = {python, "-c",
                    "import os, sys\n"
                    "places = [os.path.join(p, sys.argv[1]) for p in sys.path]\n"
                    "print(next(filter(os.path.isfile, places), ''))",
                    file.string()};
    command.out = Command::Stream::kPipe;
    command.err = Command::Stream::kPipe;
    const Finished finished = run_to_end(command, std::chrono::seconds(30));
    const fs::path found = finished.out.substr(0, finished.out.find('\n'));
    return finished.status.ok() && !found.empty() ? std::optional(found) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // no such program: the same answer
  }
}

}  // namespace

std::optional<fs::path> find_package_file(const fs::path& file) {
  const char* named = std::getenv("UNIDLE_PYTHON");
  if (named != nullptr && *named != '\0') {
    if (auto found = of_python(named, file)) {
      return found;
    }
  }
  for (const fs::path& start : {program_folder(), fs::current_path()}) {
    if (auto found = above(start, file)) {
      return found;
    }
  }
  return of_python("python3", file);
}

}  // namespace unidle::workloads
