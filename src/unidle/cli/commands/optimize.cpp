// `unidle optimize`: a better configuration, predicted or measured.
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/cli/subcommand.h"
#include "unidle/tune/optimize.h"

namespace unidle::cli::commands {

namespace {

struct Arguments {
  std::string config;
  std::string output;
  std::string budget = "10m";
  std::string format = "text";
  std::string allow;
  std::vector<std::string> command;
  int trials = 12;
  bool benchmark = false;
  bool in_place = false;
  bool dry_run = false;
};

/// Turns INT and TERM into a stop while it lives, so that a trial is ended properly and nothing is left half written.
class SignalStop {
 public:
  SignalStop() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);  // inherited by all threads; children start with a clean mask
    waiter_ = std::jthread([this](std::stop_token done) { wait(done); });
  }
  ~SignalStop() {
    waiter_.request_stop();
    waiter_.join();
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalStop(const SignalStop&) = delete;
  SignalStop& operator=(const SignalStop&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  int signal() const { return signal_; }

 private:
  void wait(const std::stop_token& done) {
    const timespec moment{0, 50'000'000};
    while (!done.stop_requested()) {
      const int got = ::sigtimedwait(&signals_, nullptr, &moment);
      if (got > 0) {
        signal_ = got;
        source_.request_stop();
      }
    }
  }

  sigset_t signals_{};
  sigset_t before_{};
  std::stop_source source_;
  std::atomic<int> signal_{0};
  std::jthread waiter_;
};

/// "90", "90s", "10m", "1.5h" in seconds.
double parse_duration(const std::string& text) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" || unit == "min" ? 60 : unit == "h" ? 3600 : 0;
  if (used == 0 || factor == 0 || !(value > 0)) {
    throw Error(ErrorCode::kUsage, "--budget", "'" + text + "' is not a time", "write 90s, 10m or 1h");
  }
  return value * factor;
}

tune::OptimizeOptions options_of(const Arguments& arguments) {
  tune::OptimizeOptions options;
  options.config = arguments.config;
  options.command = arguments.command;
  options.train_program = program_folder() / "unidle-train";
  options.benchmark = arguments.benchmark;
  options.allow_semantic = arguments.allow == "semantic";
  options.budget_s = parse_duration(arguments.budget);
  options.trials = arguments.trials;
  return options;
}

void report(const Arguments& arguments, const tune::OptimizeResult& result,
            const std::optional<tune::Written>& written) {
  if (arguments.format == "json") {
    nlohmann::json document = to_json(result);
    document["output"] = written ? nlohmann::json(written->output.string()) : nlohmann::json();
    document["backup"] = written && written->backup ? nlohmann::json(written->backup->string()) : nlohmann::json();
    fmt::print("{}\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  fmt::print("{}", to_text(result));
  if (written) {
    fmt::print("wrote {}\n", written->output.string());
    if (written->backup) {
      fmt::print("the old one is {}\n", written->backup->string());
    }
  } else if (!arguments.dry_run) {
    fmt::print("{} is unchanged\n", result.config);
  }
}

int run(const Arguments& arguments) {
  const tune::OptimizeOptions options = options_of(arguments);
  std::optional<SignalStop> stop;
  if (options.benchmark) {
    stop.emplace();
  }
  tune::OptimizeResult result;
  try {
    result = tune::optimize(
        options, [](const tune::LoggedTrial& trial) { fmt::print(stderr, "{}\n", one_line(trial)); },
        stop ? stop->token() : std::stop_token());
  } catch (const Error& failure) {
    if (failure.code() != ErrorCode::kCancelled || !stop) {
      throw;
    }
    fmt::print(stderr, "unidle: {}\n", failure.what());
    return 128 + stop->signal();
  }
  std::optional<tune::Written> written;
  // With -o a file is expected there, even when nothing is to be changed.
  const bool interrupted = result.outcome && result.outcome->interrupted;
  if (!arguments.dry_run && !interrupted && (!result.changes.empty() || !arguments.output.empty())) {
    const auto output =
        arguments.output.empty() ? std::nullopt : std::optional<std::filesystem::path>(arguments.output);
    written = tune::write_result(result, output, arguments.in_place);
  }
  report(arguments, result, written);
  return interrupted ? 128 + stop->signal() : 0;
}

std::function<int()> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("config", arguments->config, "Configuration file (YAML)")->required();
  auto* output = app.add_option("-o,--output", arguments->output, "Where to write; NAME.optimized.EXT beside CONFIG");
  app.add_flag("--in-place", arguments->in_place, "Change CONFIG itself; the old one becomes NAME.bak.EXT")
      ->excludes(output);
  app.add_flag("--benchmark", arguments->benchmark, "Measure every change in short trials, and verify the winner");
  app.add_option("--allow", arguments->allow, "Also change what is trained")->check(CLI::IsMember({"semantic"}));
  app.add_option("--budget", arguments->budget, "Time for all trials, e.g. 90s, 10m")->capture_default_str();
  app.add_option("--trials", arguments->trials, "Trials of the search")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--dry-run", arguments->dry_run, "Write nothing");
  app.add_option("--format", arguments->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("command", arguments->command, "After --: the training command, with {config} for the file");
  return [arguments] { return run(*arguments); };
}

}  // namespace

const Subcommand& optimize() {
  static const Subcommand kCommand{
      "optimize",
      "Write a better configuration, predicted from the hardware or measured",
      "Examples:\n"
      "  unidle optimize workloads/superres/naive.yaml\n"
      "  unidle optimize workloads/superres/naive.yaml --benchmark --in-place\n"
      "  unidle optimize train.yaml --benchmark -- python train.py --config {config}\n",
      setup,
  };
  return kCommand;
}

}  // namespace unidle::cli::commands
