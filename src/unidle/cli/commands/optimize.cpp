// `unidle optimize`: a better configuration, predicted or measured.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stop_token>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/terminal.h"
#include "unidle/cli/budget_option.h"
#include "unidle/cli/language_option.h"
#include "unidle/cli/signal_stop.h"
#include "unidle/cli/subcommand.h"
#include "unidle/cli/words_after.h"
#include "unidle/knobs/knob.h"
#include "unidle/language/sentence.h"
#include "unidle/tune/optimize.h"
#include "unidle/tune/output/undo.h"
#include "unidle/tune/output/written.h"

namespace unidle::cli::commands {

namespace {

struct Arguments {
  std::string config;
  std::string output;
  std::string budget = "10m";
  std::string format = "text";
  std::set<std::string> allow;
  std::string profile = "balanced";
  std::string device;
  std::vector<std::string> command;
  std::vector<std::string> only;
  int trials = 12;
  double cpus = 0;
  bool benchmark = false;
  bool in_place = false;
  bool dry_run = false;
  bool undo = false;
  bool yes = false;
  bool fresh = false;
  std::string language;

  Language speaks() const { return format == "json" ? Language::kEnglish : chosen_language(language); }
};

std::set<std::string> known_knobs(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    knobs::knob_named(name, "--only " + name);
  }
  return {names.begin(), names.end()};
}

tune::OptimizeOptions options_of(const Arguments& arguments) {
  tune::OptimizeOptions options;
  options.config = arguments.config;
  options.command = arguments.command;
  options.train_program = program_folder() / "unidle-train";
  options.benchmark = arguments.benchmark;
  options.allow_semantic = arguments.allow.contains("semantic");
  options.profile = arguments.profile == "light"  ? tune::Profile::kLight
                    : arguments.profile == "fast" ? tune::Profile::kFast
                                                  : tune::Profile::kBalanced;
  options.device = arguments.device;
  options.cpus = arguments.cpus;
  options.budget_s = budget_seconds(arguments.budget);
  options.trials = arguments.trials;
  options.only = known_knobs(arguments.only);
  options.fresh = arguments.fresh;
  options.may_write = arguments.yes;
  return options;
}

void report(const Arguments& arguments, const tune::OptimizeResult& result,
            const std::optional<tune::Written>& written) {
  if (arguments.format == "json") {
    nlohmann::json document = to_json(result);
    document["output"] = written ? nlohmann::json(written->output.string()) : nlohmann::json();
    document["backup"] = written && written->backup ? nlohmann::json(written->backup->string()) : nlohmann::json();
    print_to(stdout, "{}\n", json_text(document));
    return;
  }
  const Language language = arguments.speaks();
  print_to(stdout, "{}", to_text(result, language));
  if (written) {
    print_to(stdout, "{}\n", translate(language, "wrote {}", written->output.string()));
    if (written->backup) {
      print_to(stdout, "{}\n", translate(language, "the old file is kept as {}", written->backup->string()));
    }
  } else if (!arguments.dry_run) {
    print_to(stdout, "{}\n", translate(language, "{} is unchanged", result.config));
  }
}

int undo(const Arguments& arguments) {
  const tune::Undone undone = tune::undo(arguments.config);
  if (arguments.format == "json") {
    const nlohmann::json document = {{"schema", "unidle.optimize/1"},
                                     {"config", undone.config.string()},
                                     {"restored_from", undone.backup.string()},
                                     {"kept", undone.kept.string()}};
    print_to(stdout, "{}\n", json_text(document));
  } else {
    print_to(stdout, "{}\n",
             translate(arguments.speaks(), "{} is restored; what it held until now is in {}", undone.config.string(),
                       undone.kept.string()));
  }
  return 0;
}

/// `unidle optimize -- CMD ...` has no configuration: the first word, parsed as one, belongs to the program.
Arguments move_config_to_command(Arguments arguments) {
  move_first_word(arguments.config, arguments.command);
  if (arguments.config.empty()) {
    if (arguments.command.empty()) {
      throw Error(ErrorCode::kUsage, "optimize", "neither CONFIG nor a command is given",
                  "name a configuration, or the training command after --");
    }
    if (!arguments.output.empty() || arguments.in_place || arguments.undo) {
      throw Error(ErrorCode::kUsage, "optimize", "there is no CONFIG to write to", "name it before --");
    }
    arguments.benchmark = true;
    arguments.dry_run = true;
  }
  if (!arguments.only.empty() && !arguments.benchmark) {
    throw Error(ErrorCode::kUsage, "--only", "names knobs to measure, but nothing is measured", "add --benchmark");
  }
  return arguments;
}

int run(const Arguments& given) {
  const Arguments arguments = move_config_to_command(given);
  if (arguments.undo) {
    return undo(arguments);
  }
  const tune::OptimizeOptions options = options_of(arguments);
  if (!arguments.output.empty() && !arguments.dry_run) {
    tune::check_output(options.config, arguments.output);
  }
  std::optional<SignalStop> stop;
  if (options.benchmark) {
    stop.emplace();
  }
  tune::OptimizeResult result;
  try {
    const auto search = options.config.empty() ? tune::optimize_program : tune::optimize;
    const tune::Progress progress = {
        [&](const tune::LoggedTrial& trial) { print_to(stderr, "{}\n", one_line(trial, arguments.speaks())); },
        [&](const std::string& sentence) {
          print_to(stderr, "{}\n", translate_sentence(arguments.speaks(), sentence));
        }};
    result = search(options, progress, stop ? stop->token() : std::stop_token());
  } catch (const Error& failure) {
    if (failure.code() != ErrorCode::kCancelled || !stop) {
      throw;
    }
    say_error("unidle", failure.what());
    return 128 + stop->signal();
  }
  std::optional<tune::Written> written;
  // -o promises a file, even when nothing changes.
  const bool interrupted = result.outcome && result.outcome->interrupted;
  if (!arguments.dry_run && !interrupted && (!result.changes.empty() || !arguments.output.empty())) {
    const auto output =
        arguments.output.empty() ? std::nullopt : std::optional<std::filesystem::path>(arguments.output);
    written = tune::write_result(result, output, arguments.in_place);
  }
  report(arguments, result, written);
  return interrupted ? 128 + stop->signal() : result.outcome && result.outcome->all_failed ? 1 : 0;
}

std::function<int()> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("config", arguments->config, "Configuration file (YAML, JSON, TOML, Python)");
  auto* output = app.add_option("-o,--output", arguments->output,
                                "The file to write; NAME.optimized.EXT beside CONFIG by default");
  app.add_flag("--in-place", arguments->in_place, "Change CONFIG itself; the old one becomes NAME.bak.EXT")
      ->excludes(output);
  app.add_flag("--benchmark", arguments->benchmark, "Measure every change in short trials, and verify the winner");
  app.add_option("--allow", arguments->allow, "semantic: also try settings that change what is trained")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"semantic"}));
  app.add_option("--budget", arguments->budget, "Time for all trials, e.g. 90s, 10m")->capture_default_str();
  app.add_option("--trials", arguments->trials, "Trials of the search")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--only", arguments->only, "Try only these knobs, e.g. batch.size,loader.workers")
      ->delimiter(',')
      ->type_name("KNOB,...")
      ->allow_extra_args(false);
  app.add_option(
         "--profile", arguments->profile,
         "How far to go without measuring: light leaves the arithmetic alone, balanced may change rounding, fast "
         "also proposes what helps most programs but not all")
      ->check(CLI::IsMember({"light", "balanced", "fast"}))
      ->capture_default_str();
  app.add_option("--device", arguments->device, "Advise for this GPU, e.g. A100-40GB, RTX 4090, or cpu");
  app.add_option("--cpus", arguments->cpus, "Advise for this many CPUs")->check(CLI::Range(1.0, 4096.0));
  app.add_flag("--dry-run", arguments->dry_run, "Write nothing");
  app.add_flag("--yes", arguments->yes, "Run trials even if nothing keeps them from overwriting your files");
  app.add_flag("--fresh", arguments->fresh, "Measure everything again instead of continuing a search that was stopped");
  app.add_flag("--undo", arguments->undo, "Undo the last --in-place");
  app.add_option("--format", arguments->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  add_language_option(app, arguments->language);
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
      "  unidle optimize ds_config.json --device H100 --profile fast --dry-run\n"
      "  unidle optimize train.yaml --in-place && unidle optimize train.yaml --undo\n"
      "  unidle optimize --benchmark -- python train.py\n"
      "  unidle optimize --only batch.size --allow semantic -- python train.py --batch-size 32\n"
      "  unidle optimize train.yaml --benchmark -- python train.py --config {config}\n",
      setup,
  };
  return kCommand;
}

}  // namespace unidle::cli::commands
