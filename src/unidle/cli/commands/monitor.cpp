// unidle monitor: the current activity of devices and loaders.
#include "unidle/monitor/monitor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/terminal.h"
#include "unidle/cli/language_option.h"
#include "unidle/cli/number_option.h"
#include "unidle/cli/subcommand.h"
#include "unidle/record/record.h"

namespace unidle::cli::commands {

namespace {

struct Arguments {
  double seconds = 0;
  double interval_ms = 1000;
  std::optional<std::int64_t> pid;
  std::string record;
  std::string format;
  std::string listen;
  std::optional<std::string> web;
  std::string language;
};

monitor::Format choose_format(const Arguments& arguments) {
  static const std::map<std::string, monitor::Format> kFormats = {{"live", monitor::Format::kLive},
                                                                  {"lines", monitor::Format::kLines},
                                                                  {"csv", monitor::Format::kCsv},
                                                                  {"json", monitor::Format::kJson}};
  const bool terminal = ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDIN_FILENO) == 1;
  if (!arguments.format.empty()) {
    const monitor::Format format = kFormats.at(arguments.format);
    return format == monitor::Format::kLive && !terminal ? monitor::Format::kLines : format;
  }
  if (terminal && !arguments.web) {  // a live view would cover the page's address
    return monitor::Format::kLive;
  }
  return arguments.listen.empty() && !arguments.web ? monitor::Format::kLines : monitor::Format::kSilent;
}

bool print(std::string_view text) {
  write_to(stdout, text);
  return flush_output();
}

int execute(const Arguments& arguments) {
  monitor::Options options;
  options.seconds = arguments.seconds;
  options.interval_ns = static_cast<std::int64_t>(arguments.interval_ms * static_cast<double>(kNsPerMs));
  options.pid = arguments.pid;
  if (!arguments.record.empty()) {
    options.record = record::find_run(arguments.record);
    if (!std::filesystem::exists(status_of(*options.record))) {
      throw Error(ErrorCode::kInput, arguments.record, "is not there", "a record's folder was expected");
    }
  }
  options.format = choose_format(arguments);
  options.listen = arguments.listen;
  options.web = arguments.web ? (arguments.web->empty() ? "127.0.0.1:0" : *arguments.web) : "";
  options.width = terminal_width(stdout);
  options.language = chosen_language(arguments.language);
  options.print = print;
  options.note = [](std::string_view text) { print_to(stderr, "unidle: {}", text); };
  monitor::watch(options);
  return 0;
}

std::function<int()> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("RECORD", arguments->record,
                 "Record to follow: its folder or its name (default: the newest run that is under way)");
  app.add_option("--seconds", arguments->seconds, "Stop after so many seconds (0: run until Ctrl-C)")
      ->check(number_from_zero());
  app.add_option("--interval", arguments->interval_ms, "Milliseconds between readings (1000)")
      ->check(CLI::Range(10.0, 3600000.0));
  app.add_option("--pid", arguments->pid, "Watch this process and its children, and stop when it ends")
      ->check(positive_number());
  app.add_option("--format", arguments->format,
                 "By default a live view on a terminal, lines elsewhere; csv and json are for programs")
      ->check(CLI::IsMember({"live", "lines", "csv", "json"}));
  app.add_option("--listen", arguments->listen, "Serve metrics for Prometheus, on 127.0.0.1 unless a host is named")
      ->type_name("HOST:PORT");
  app.add_option_function<std::string>(
         "--web", [arguments](const std::string& address) { arguments->web = address; },
         "Show the live view in a browser; on a free port of 127.0.0.1 unless an address is given (--web=HOST:PORT)")
      ->expected(0, 1)
      ->type_name("HOST:PORT");
  add_language_option(app, arguments->language);
  return [arguments] { return execute(*arguments); };
}

}  // namespace

const Subcommand& monitor() {
  static const Subcommand kCommand = {"monitor", "Watch devices, loaders and the run under way",
                                      "Keys of the live view: h help, s sort, p pause, q quit. A summary and a verdict "
                                      "end it, also on Ctrl-C.\n\nExamples:\n"
                                      "  unidle monitor\n"
                                      "  unidle monitor --seconds 60 --format csv > readings.csv\n"
                                      "  unidle monitor --pid 4711\n"
                                      "  unidle monitor --listen :9400\n"
                                      "  unidle monitor --web",
                                      setup};
  return kCommand;
}

}  // namespace unidle::cli::commands
