#include "unidle/tune/repeatable.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "unidle/base/clock.h"
#include "unidle/base/environment.h"
#include "unidle/base/error.h"
#include "unidle/base/secrets.h"
#include "unidle/record/listing.h"
#include "unidle/record/note_types.h"

namespace unidle::tune {

namespace fs = std::filesystem;

namespace {

std::string base_name(const std::string& word) { return fs::path(word).filename().string(); }

[[noreturn]] void fail(const account::RunData& run, const std::string& why, std::string_view hint) {
  throw Error(ErrorCode::kInput, run.folder.string(), why, std::string(hint));
}

/// What an interpreter runs: a script, or standard input; neither for -c and -m, and for any other program.
struct Script {
  std::optional<std::string> file;
  bool standard_input = false;
};

Script script_of(const std::vector<std::string>& command) {
  const std::string program = base_name(command.front());
  const bool python = program.starts_with("python");
  if (!python && program != "bash" && program != "sh") {
    return {};
  }
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word == "-") {
      return {{}, true};
    }
    if (!word.starts_with("-")) {
      return {word};
    }
    if (!word.starts_with("--") && word.find_first_of(python ? "cm" : "c") != std::string::npos) {
      return {};
    }
    i += python && (word == "-W" || word == "-X") ? 1 : 0;
  }
  return {{}, true};
}

bool is_in_path(const std::string& program, const fs::path& folder) {
  if (program.find('/') != std::string::npos) {
    return ::access((folder / program).c_str(), X_OK) == 0;
  }
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    const fs::path entry = rest.substr(0, end);
    if (::access((folder / entry / program).c_str(), X_OK) == 0) {
      return true;
    }
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return false;
}

void refuse_unfinished(const account::RunData& run, const diagnose::Diagnosis& diagnosis) {
  if (run.meta_text(record::meta::kKind) == record::meta::kSearch) {
    fail(run, "is the record of a search, not of a run", "name the record of a run; unidle runs lists them");
  }
  if (!run.meta_time(record::meta::kEndNs) && record::is_being_written(run.folder)) {
    fail(run, "is being written: its run goes on, and trials beside it would disturb both",
         "wait until the run has ended");
  }
  if (diagnosis.verdict == diagnose::Verdict::kFailed) {
    fail(run, fmt::format("its run failed, and so would each trial: {}", diagnose::answer(diagnosis)),
         "mend that first, then record a run that works: unidle run -- CMD ...");
  }
}

void refuse_several_processes(const account::RunData& run, const std::vector<std::string>& command) {
  constexpr std::array<std::string_view, 9> kLaunchers = {"torchrun", "mpirun", "mpiexec",   "orterun",   "srun",
                                                          "sbatch",   "salloc", "deepspeed", "horovodrun"};
  const std::string program = base_name(command.front());
  std::int64_t processes = 1;
  record::each_note<record::NoteType::kParallel>(
      run.notes, [&](const auto& note) { processes = std::max(processes, note.whole("world_size").value_or(1)); });
  const bool launched = std::ranges::find(kLaunchers, program) != kLaunchers.end();
  if (launched || processes > 1) {
    fail(run,
         launched ? fmt::format("its command runs under {}, and trials are of one process", program)
                  : fmt::format("its run trained in {} processes, and trials are of one", processes),
         "try its changes with unidle run --apply under the same launcher, and compare the records with unidle "
         "compare");
  }
}

void refuse_gone(const account::RunData& run, const Repeatable& found) {
  std::error_code failure;
  if (!fs::is_directory(found.folder, failure)) {
    fail(run, fmt::format("the folder {} in which it ran is gone", found.folder.string()),
         "go to the program and record a run there: unidle run -- CMD ...");
  }
  const Script script = script_of(found.command);
  const bool script_gone = script.file && !fs::exists(found.folder / *script.file, failure);
  if (script_gone || !is_in_path(found.command.front(), found.folder)) {
    fail(run, fmt::format("its program {} is not there any more", script_gone ? *script.file : found.command.front()),
         "fetch it back, or name what replaced it: unidle fix RECORD -- CMD ...");
  }
  const bool standard_input = script.standard_input || std::ranges::any_of(found.command, [](const std::string& word) {
                                return word == "/dev/stdin" || word.starts_with("/dev/fd/");
                              });
  if (standard_input) {
    fail(run, "its command reads standard input, which is gone",
         "write what it reads into a file, and record that: unidle run -- CMD ...");
  }
}

/// Files that are newer than the record, and another machine.
std::vector<std::string> notes_on(const account::RunData& run, const Repeatable& found) {
  std::vector<std::string> notes;
  const auto started = parse_utc(run.meta_text(record::meta::kStartedUtc), "%Y-%m-%dT%H:%M:%SZ");
  const Script script = script_of(found.command);
  std::error_code failure;
  if (started && script.file) {
    const auto written = fs::last_write_time(found.folder / *script.file, failure);
    const auto written_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::file_clock::to_sys(written).time_since_epoch());
    if (!failure && written_ns.count() > *started + kNsPerSecond) {  // the start is in whole seconds
      notes.push_back(fmt::format(
          "{} was written after this record began: if its code changed, the record is out of date", *script.file));
    }
  }
  const nlohmann::json host = run.meta_value(record::meta::kHost);
  const std::string recorded = host.is_object() ? host.value("hostname", "") : "";
  if (!recorded.empty() && recorded != host_name()) {
    notes.push_back(fmt::format("the record is of the machine {}; trials run on this one", recorded));
  }
  return notes;
}

}  // namespace

Repeatable repeatable_command(const account::RunData& run, const diagnose::Diagnosis& diagnosis,
                              const std::vector<std::string>& command) {
  refuse_unfinished(run, diagnosis);
  Repeatable found{diagnosis.command, run.meta_text(record::meta::kFolder), {}};
  if (!command.empty()) {
    found = {command, fs::current_path(), {}};
  }
  if (found.command.empty() || found.folder.empty()) {
    fail(run, "does not say which command it is of", "give the command: unidle run -- CMD ... records it");
  }
  const std::string program = base_name(found.command.front());
  if (program == "unidle" || program == "unidle-train") {
    fail(run, "is of a workload of unidle, whose settings are in its configuration",
         "unidle optimize CONFIG --benchmark tunes it");
  }
  const bool masked = std::ranges::any_of(
      found.command, [](const std::string& word) { return word.find(kMasked) != std::string::npos; });
  if (masked) {
    fail(run, "its command held a secret, which is not recorded", "give the command: unidle fix RECORD -- CMD ...");
  }
  refuse_several_processes(run, found.command);
  refuse_gone(run, found);
  found.notes = notes_on(run, found);
  return found;
}

}  // namespace unidle::tune
