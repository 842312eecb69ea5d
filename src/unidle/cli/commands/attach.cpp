// unidle attach: records a running process that asked for it. Started by `unidle.observe()` of the Python package.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unidle/base/environment.h"
#include "unidle/base/error.h"
#include "unidle/base/terminal.h"
#include "unidle/cli/subcommand.h"
#include "unidle/diagnose/configured/configured.h"
#include "unidle/observe/attach.h"
#include "unidle/observe/python.h"
#include "unidle/record/record.h"

namespace unidle::cli::commands {

namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string record;
  std::string name;
  pid_t pid = 0;
  pid_t tree = 0;
  std::string remove_at_end;
  std::vector<std::string> command;
};

/// Continues in a process that the asking one is not the parent of and that no terminal reaches: it must neither be
/// waited for, nor end with the terminal's Ctrl-C.
void go_on_in_background() {
  const pid_t child = ::fork();
  if (child < 0) {
    throw system_error(ErrorCode::kChild, "unidle attach", "no process can be started", errno);
  }
  if (child > 0) {
    ::_exit(0);
  }
  ::setsid();
}

/// Says where the record is and which variables processes need to report there, then leaves the streams: whoever reads
/// them waits for their end.
void tell(const fs::path& record, const std::map<std::string, std::string>& environment) {
  print_to(stdout, "{}\n", nlohmann::json{{"record", record.string()}, {"environment", environment}}.dump());
  flush_output();
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int stream = 0; stream <= 2 && nothing >= 0; ++stream) {
    ::dup2(nothing, stream);
  }
}

int execute(const Arguments& arguments) {
  go_on_in_background();
  const bool named = !arguments.record.empty();
  std::map<std::string, std::string> environment;
  observe::add_python_shim(environment);
  observe::AttachOptions options;
  options.pid = arguments.pid;
  options.tree = arguments.tree;
  options.argv = arguments.command;
  std::error_code ignored;
  options.configured =
      diagnose::configured_run_settings(options.argv, fs::current_path(ignored), merged_environment({}), {});
  std::optional<record::RunFolder> made;
  options.record =
      named ? fs::path(arguments.record)
            : made.emplace(arguments.name.empty() ? record::run_name(arguments.command) : arguments.name).path();
  options.recording = [&](const fs::path& record, const fs::path& probe) {
    environment["UNIDLE_PROBE_DIR"] = probe.string();
    tell(record, environment);
    if (!named) {
      record::link_latest(record);  // at once, since we may be killed
    }
  };
  const fs::path record = observe::attach(options);
  if (!named) {
    record::link_latest(record);
  }
  if (!arguments.remove_at_end.empty()) {
    fs::remove(arguments.remove_at_end, ignored);
  }
  return 0;
}

std::function<int()> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.group("");  // not listed: people call unidle.observe()
  app.add_option("-o,--output", arguments->record, "Folder of the record (default: .unidle/runs/<UTC time>-<name>)")
      ->type_name("RECORD");
  app.add_option("--name", arguments->name, "Name of the run in .unidle/runs (default: the name of the program)");
  app.add_option("--pid", arguments->pid, "The record ends when this process ends")->required()->type_name("PID");
  app.add_option("--tree", arguments->tree, "Root of the recorded process tree (default: the process of --pid)")
      ->type_name("PID");
  app.add_option("--remove-at-end", arguments->remove_at_end,
                 "File to remove at the end; ranks of a job find their record by it")
      ->type_name("FILE");
  app.add_option("command", arguments->command, "Command and arguments of that process, after --")
      ->required()
      ->type_name("CMD");
  app.positionals_at_end();
  return [arguments] { return execute(*arguments); };
}

}  // namespace

const Subcommand& attach() {
  static const Subcommand kCommand = {"attach", "Record a running process that asked for it",
                                      "Started by unidle.observe() of the Python package; docs/python.md.", setup};
  return kCommand;
}

}  // namespace unidle::cli::commands
