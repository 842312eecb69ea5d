// The folder of runs: names of new records and the link to the latest.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/numbers.h"
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

/// Keeps records out of the user's repository. Failure is ignored.
void ignore_in_git() {
  const fs::path file = home_folder() / ".gitignore";
  if (std::getenv("UNIDLE_HOME") == nullptr && !fs::exists(status_of(file))) {
    std::ofstream(file) << "*\n";
  }
}

/// The name, and the number behind its last dash that keeps names of one second apart; 1 without one.
std::pair<std::string, int> split_number(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  const auto number = dash == std::string::npos ? std::nullopt : parse_number<int>(name.substr(dash + 1));
  return number ? std::pair(name.substr(0, dash), *number) : std::pair(name, 1);
}

/// Newest first.
std::vector<std::string> names_of_runs() {
  std::vector<std::string> names;
  std::error_code failure;
  for (fs::directory_iterator entry(runs_folder(), failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (entry->symlink_status(failure).type() == fs::file_type::directory && !name.starts_with(".")) {
      names.push_back(name);
    }
  }
  std::ranges::sort(names, std::greater(), split_number);
  return names;
}

/// The run's name without its time, and without a number that only keeps it apart from another one of `names`.
std::string program_of(const std::string& name, const std::vector<std::string>& names) {
  constexpr std::size_t kTime = std::string_view("20261127-084523-").size();
  const std::string unnumbered = split_number(name).first;
  const bool numbered = std::ranges::find(names, unnumbered) != names.end();
  const std::string& whole = numbered ? unnumbered : name;
  return whole.substr(std::min(kTime, whole.size()));
}

/// Whether it is the record of a search (`unidle optimize`, `unidle fix`), which trains in runs of its own.
bool is_search(const std::string& name) {
  try {
    return Reader(runs_folder() / name).meta("kind") == "optimize";
  } catch (const Error&) {
    return false;
  }
}

/// The run that is `back` runs before the newest one.
fs::path run_before(std::size_t back) {
  std::size_t runs = 0;
  for (const std::string& name : names_of_runs()) {
    if (!is_search(name) && runs++ == back) {
      return runs_folder() / name;
    }
  }
  throw Error(ErrorCode::kInput, fmt::format("-{}", back + 1),
              fmt::format("there are {} runs in {}", runs, runs_folder().string()), "unidle runs lists them");
}

/// Programs and modules of Python that start the script named in one of their words.
constexpr std::array<std::string_view, 22> kLaunchers = {"torchrun",
                                                         "torch.distributed.run",
                                                         "torch.distributed.launch",
                                                         "accelerate",
                                                         "accelerate.commands.launch",
                                                         "deepspeed",
                                                         "horovodrun",
                                                         "mpirun",
                                                         "mpiexec",
                                                         "srun",
                                                         "uv",
                                                         "poetry",
                                                         "pipenv",
                                                         "conda",
                                                         "env",
                                                         "nice",
                                                         "timeout",
                                                         "taskset",
                                                         "numactl",
                                                         "stdbuf",
                                                         "time",
                                                         "ipython"};

/// Nothing for a word that is no script, such as the text of `bash -c`.
std::optional<std::string> script_name(const std::string& word) {
  const fs::path path(word);
  const bool one_word = word.find_first_of(" \t\r\n;") == std::string::npos;
  return one_word && (path.extension() == ".py" || path.extension() == ".sh") ? std::optional(path.stem().string())
                                                                              : std::nullopt;
}

std::optional<std::string> first_script(const std::vector<std::string>& command, std::size_t from) {
  for (std::size_t i = from; i < command.size(); ++i) {
    if (auto name = script_name(command[i])) {
      return name;
    }
  }
  return std::nullopt;
}

constexpr const char* kRecordOne = "record one: unidle run -- CMD ..., or name the folder of a record";
constexpr std::string_view kListThem = "unidle runs lists them";

}  // namespace

fs::path new_run_folder(std::string_view name, Clock& clock) {
  const std::string base = format_utc_compact(clock.wall_ns()) + "-" + safe_name(name);
  std::error_code failure;
  fs::create_directories(runs_folder(), failure);
  ignore_in_git();
  fs::path folder = runs_folder() / base;
  // Creating the folder claims the name: several runs may start at once.
  for (int n = 2; !make_record_folder(folder, failure) && !failure; ++n) {
    folder = runs_folder() / fmt::format("{}-{}", base, n);
  }
  return folder;
}

std::string run_name(const std::vector<std::string>& command) {
  std::string program = fs::path(command[0]).filename().string();
  const bool python = program.starts_with("python");
  if (!python && program != "bash" && program != "sh") {
    return std::ranges::find(kLaunchers, program) == kLaunchers.end() ? program
                                                                      : first_script(command, 1).value_or(program);
  }
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (python && command[i] == "-m" && i + 1 < command.size()) {
      const bool launches = std::ranges::find(kLaunchers, command[i + 1]) != kLaunchers.end();
      return launches ? first_script(command, i + 2).value_or(program) : command[i + 1];
    }
    if (!command[i].starts_with("-")) {
      return script_name(command[i]).value_or(program);
    }
  }
  return program;
}

RunFolder::~RunFolder() { ::rmdir(path_.c_str()); }  // fails unless empty

fs::path find_run(const std::string& text) {
  if (text.empty() || text.find('/') != std::string::npos || fs::exists(status_of(text))) {
    return text;
  }
  if (text == "latest") {
    return latest_run_folder();
  }
  std::vector<std::string> names = names_of_runs();
  if (const auto number = parse_number<int>(text); number && *number < 0) {
    return run_before(static_cast<std::size_t>(-(static_cast<std::int64_t>(*number) + 1)));
  }
  if (std::ranges::find(names, text) != names.end()) {
    return runs_folder() / text;
  }
  std::erase_if(names, [&](const std::string& name) { return name.find(text) == std::string::npos; });
  if (names.empty()) {
    throw Error(ErrorCode::kInput, text,
                fmt::format("no such file, and no run in {} has this in its name", runs_folder().string()),
                std::string(kListThem));
  }
  if (names.size() > 1) {
    throw Error(ErrorCode::kInput, text, fmt::format("{} runs have this in their names", names.size()),
                fmt::format("the newest is {}; {}", names.front(), kListThem));
  }
  return runs_folder() / names.front();
}

std::pair<fs::path, fs::path> last_two_runs() {
  const std::vector<std::string> names = names_of_runs();
  const auto newest = std::ranges::find_if_not(names, is_search);
  if (newest == names.end()) {
    throw Error(ErrorCode::kInput, runs_folder().string(), "no run has been recorded yet", kRecordOne);
  }
  const auto before = std::find_if(newest + 1, names.end(), [&](const std::string& name) {
    return program_of(name, names) == program_of(*newest, names) && !is_search(name);
  });
  if (before == names.end()) {
    throw Error(ErrorCode::kInput, *newest, "is the only run of its program",
                "record another one, or name two records");
  }
  return {runs_folder() / *before, runs_folder() / *newest};
}

std::vector<fs::path> earlier_runs(const fs::path& folder) {
  std::vector<fs::path> runs;
  std::error_code failure;
  if (!fs::equivalent(folder.parent_path(), runs_folder(), failure)) {
    return runs;
  }
  const std::vector<std::string> names = names_of_runs();
  const auto own = std::ranges::find(names, folder.filename().string());
  const std::string program = own == names.end() ? "" : program_of(*own, names);
  for (auto name = own; !program.empty() && name != names.end(); ++name) {
    const bool may_be = name->find(program) != std::string::npos;  // cheap, where a folder holds thousands
    if (name != own && may_be && program_of(*name, names) == program) {
      runs.push_back(runs_folder() / *name);
    }
  }
  return runs;
}

fs::path latest_run_folder() {
  const fs::path link = runs_folder() / "latest";
  std::error_code failure;
  const fs::path target = fs::exists(status_of(link)) ? fs::read_symlink(link, failure) : fs::path();
  if (target.empty()) {
    throw Error(ErrorCode::kInput, link.string(), "no run has been recorded yet", kRecordOne);
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
