// The folder of runs: names of new records and the link to the latest.
#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <system_error>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/record/detail/access.h"
#include "unidle/record/record.h"

namespace unidle::record {

namespace fs = std::filesystem;

namespace {

fs::path runs_folder() { return home_folder() / "runs"; }

/// Characters that every file system and shell accepts without quoting.
std::string safe_name(std::string_view name) {
  std::string safe;
  for (const char c : name.substr(0, 60)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    safe += plain ? c : '-';
  }
  return safe.empty() || safe.front() == '.' ? "run" + safe : safe;
}

}  // namespace

fs::path new_run_folder(std::string_view name, Clock& clock) {
  const std::string base = format_utc_compact(clock.wall_ns()) + "-" + safe_name(name);
  std::error_code failure;
  fs::create_directories(runs_folder(), failure);
  fs::path folder = runs_folder() / base;
  // Creating the folder claims the name: several runs may start at once.
  for (int n = 2; !make_record_folder(folder, failure) && !failure; ++n) {
    folder = runs_folder() / fmt::format("{}-{}", base, n);
  }
  return folder;
}

std::string run_name(const std::vector<std::string>& command) {
  std::string program = fs::path(command[0]).filename().string();
  if (program.starts_with("python") || program == "bash" || program == "sh") {
    for (std::size_t i = 1; i < command.size(); ++i) {
      if (!command[i].starts_with("-")) {
        const std::string extension = fs::path(command[i]).extension().string();
        const bool one_word = command[i].find_first_of(" \t\r\n;") == std::string::npos;  // not the script of `bash -c`
        const bool script = one_word && (extension == ".py" || extension == ".sh");
        return script ? fs::path(command[i]).stem().string() : program;
      }
    }
  }
  return program;
}

RunFolder::~RunFolder() { ::rmdir(path_.c_str()); }  // fails unless empty

fs::path latest_run_folder() {
  const fs::path link = runs_folder() / "latest";
  std::error_code failure;
  const fs::path target = fs::exists(status_of(link)) ? fs::read_symlink(link, failure) : fs::path();
  if (target.empty()) {
    throw Error(ErrorCode::kInput, link.string(), "no run has been recorded yet", "record one: unidle run -- CMD ...");
  }
  return (target.is_absolute() ? target : runs_folder() / target).lexically_normal();
}

void link_latest(const fs::path& folder) {
  const fs::path runs = runs_folder();
  std::error_code failure;
  const fs::path absolute = fs::absolute(folder, failure).lexically_normal();
  fs::create_directories(runs, failure);
  // Relative if possible, so that .unidle may be moved.
  const bool inside = absolute.parent_path() == fs::absolute(runs, failure).lexically_normal();
  const fs::path target = inside ? absolute.filename() : absolute;
  const fs::path temporary = runs / fmt::format(".latest-{}", ::getpid());
  fs::remove(temporary, failure);
  fs::create_symlink(target, temporary, failure);
  if (!failure) {
    fs::rename(temporary, runs / "latest", failure);
    if (failure) {
      fs::remove(temporary, failure);
    }
  }
}

}  // namespace unidle::record
