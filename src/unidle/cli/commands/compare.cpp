// unidle compare: two records side by side.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <set>
#include <tuple>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/terminal.h"
#include "unidle/base/units.h"
#include "unidle/cli/language_option.h"
#include "unidle/cli/signal_stop.h"
#include "unidle/cli/subcommand.h"
#include "unidle/experiment/configurations.h"
#include "unidle/observe/recovery.h"
#include "unidle/record/record.h"
#include "unidle/report/comparison.h"

namespace unidle::cli::commands {

namespace {

struct Options {
  std::string a;
  std::string b;
  std::string format = "text";
  std::string language;
  double tolerance_percent = 100 * report::kTolerance;
  int runs = experiment::ConfigurationTurns{}.runs;
  double seconds = experiment::ConfigurationTurns{}.seconds;
  std::vector<std::string> command;
};

bool is_config(const std::string& path) {
  static const std::set<std::string> kExtensions = {".yaml", ".yml", ".json", ".toml", ".py"};
  return std::filesystem::is_regular_file(status_of(path)) &&
         kExtensions.contains(std::filesystem::path(path).extension());
}

account::RunData loaded(const experiment::ConfigurationRun& done, Language language) {
  account::RunData data = account::load_run(done.record);
  data.name = done.config.string();
  if (done.timed_out) {
    data.meta[std::string(record::meta::kOutcome)] = "stopped";
  }
  const auto rate = report::summarise(data).throughput.training;
  const std::string_view side = done.side == experiment::Side::kA ? "A" : "B";
  print_to(stderr, "{}\n",
           translate(language, "{} run {}: {}", side, done.pair + 1,
                     rate ? translate(language, "{} samples/s", format_number(rate->value))
                          : std::string(translate(language, "no training steps"))));
  return data;
}

report::Comparison configurations_compared(const Options& options, double tolerance, Language language) {
  std::vector<account::RunData> a;
  std::vector<account::RunData> b;
  experiment::ConfigurationTurns turns;
  turns.a = options.a;
  turns.b = options.b;
  turns.command = options.command;
  turns.train_program = program_folder() / "unidle-train";
  turns.runs = options.runs;
  turns.seconds = options.seconds;
  turns.on_run = [&](const auto& done) {
    (done.side == experiment::Side::kA ? a : b).push_back(loaded(done, language));
  };
  const SignalStop stop;
  experiment::run_in_turns(turns, stop.token());
  return report::compare(a, b, tolerance, language);
}

/// Fills in the records that the command leaves out: the last two of one program, or the newest one as B. Of "latest"
/// and other names of runs it makes paths.
Options completed(Options options) {
  if (options.a.empty()) {
    std::tie(options.a, options.b) = record::last_two_runs();
    print_to(stderr, "unidle: {} against {}\n", options.a, options.b);
    return options;
  }
  options.a = record::find_run(options.a);
  if (options.b.empty() && is_config(options.a)) {
    throw Error(ErrorCode::kUsage, "compare", "takes two configurations", "name the second one too");
  }
  options.b = options.b.empty() ? record::latest_run_folder() : record::find_run(options.b);
  return options;
}

report::Comparison compared(const Options& options, Language language) {
  const double tolerance = options.tolerance_percent / 100;
  if (is_config(options.a) != is_config(options.b)) {
    throw Error(ErrorCode::kUsage, is_config(options.a) ? options.a : options.b,
                "is a configuration and the other is not", "compare two records, or two configurations");
  }
  if (!is_config(options.a)) {
    observe::recover(options.a);
    observe::recover(options.b);
    const account::RunData a = account::load_run(options.a);  // load this first, so that an error names it first
    return report::compare(a, account::load_run(options.b), tolerance, language);
  }
  return configurations_compared(options, tolerance, language);
}

int run(const Options& options) {
  const bool json = options.format == "json";
  const Language language = json ? Language::kEnglish : chosen_language(options.language);
  const Options named = completed(options);
  const report::Comparison comparison = compared(named, language);
  if (named.a == named.b) {
    print_to(stderr, "unidle: A and B are the same: {}\n", named.a);
  }
  if (json) {
    print_to(stdout, "{}\n", json_text(report::to_json(comparison)));
  } else {
    print_to(stdout, "{}", report::to_text(comparison, terminal_width(stdout), use_colour(stdout), language));
  }
  return comparison.regression() ? 1 : 0;
}

std::function<int()> setup(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("A", options->a,
                 "Before: a record (its folder, its record.db or its name) or a configuration; without A and B, the "
                 "last two records of one program");
  app.add_option("B", options->b, "After: the same; the latest record by default");
  app.add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--tolerance", options->tolerance_percent,
                 "B may be this many per cent slower before it counts as a regression")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  app.add_option("--runs", options->runs, "Two configurations: how often each runs, alternating")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--seconds", options->seconds, "Two configurations: how many seconds a run may take")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  app.add_option("command", options->command, "After --: the training command, with {config} for the file");
  add_language_option(app, options->language);
  return [options] { return run(*options); };
}

}  // namespace

const Subcommand& compare() {
  static const Subcommand kCommand = {
      "compare", "Compare two records or configurations: is the second faster, and does it learn as well?",
      "Examples:\n"
      "  unidle compare .unidle/runs/before .unidle/runs/after\n"
      "  unidle compare before after --format json --tolerance 2\n"
      "  unidle compare naive.yaml tuned.yaml --runs 5\n"
      "  unidle compare a.yaml b.yaml --seconds 60 -- python train.py --config {config}\n\n"
      "Exit code 1: B is a regression (slower beyond the tolerance, a loss or metric that is worse, or a run that "
      "failed).",
      setup};
  return kCommand;
}

}  // namespace unidle::cli::commands
