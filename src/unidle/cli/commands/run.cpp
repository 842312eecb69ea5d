// unidle run: observes a training command.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unidle/base/environment.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/base/secrets.h"
#include "unidle/base/shell.h"
#include "unidle/cache/store.h"
#include "unidle/cli/language_option.h"
#include "unidle/cli/number_option.h"
#include "unidle/cli/subcommand.h"
#include "unidle/cli/trackers.h"
#include "unidle/diagnose/configured/configured.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/knobs/apply_arguments.h"
#include "unidle/knobs/reach.h"
#include "unidle/knobs/run_options.h"
#include "unidle/language/sentence.h"
#include "unidle/observe/observe.h"
#include "unidle/record/record.h"
#include "unidle/trace/injection.h"
#include "unidle/trace/recorded.h"
#include "unidle/tune/fix.h"
#include "unidle/tune/trials/applied.h"

namespace unidle::cli::commands {

namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string record;
  std::string name;
  bool no_capture = false;
  std::optional<double> timeout_s;
  std::vector<std::string> apply;
  std::optional<int> steps;
  std::optional<int> trace;
  bool kernels = false;
  std::vector<std::string> trackers;
  std::vector<std::string> command;
  std::string language;
};

/// Why there is no profiler window; empty if there is one.
std::string why_not_traced(const fs::path& folder, Language language) {
  const record::Reader reader(folder);
  if (!trace::recorded_traces(reader).empty()) {
    return "";
  }
  const std::string why = trace::why_no_trace(reader);
  return why.empty() ? std::string(translate(language, "no training step of PyTorch was seen")) : why;
}

/// Prints which requested settings the running program took, as read back from it; settings passed in the command's
/// words are in force anyway.
void print_applied_settings(const knobs::Reach& reached, const fs::path& folder, Language language) {
  const knobs::Settings& asked = reached.at_run_time;
  if (asked.empty()) {
    return;  // nothing was requested: do not read the record
  }
  std::vector<std::string> taken;
  for (const auto& [knob, applied] : tune::applied_settings(record::Reader(folder), asked)) {
    const std::string change = knobs::pair_key(knob, asked.at(knob));
    if (applied.taken && applied.why.empty()) {
      taken.push_back(change);
    } else if (applied.taken) {
      say(translate(language, "{} taken in part: {}", change, translate_sentence(language, applied.why)));
    } else {
      say(translate(language, "{} refused: {}", change, translate_sentence(language, applied.why)));
    }
  }
  if (!taken.empty()) {
    say(translate(language, "taken: {}", fmt::format("{}", fmt::join(taken, ", "))));
  }
}

/// What a finished run is told to do next.
struct Verdict {
  std::string sentence;  // the diagnosis; empty if nothing was trained
  bool fixable = false;  // unidle fix has something to try
};

/// Nothing of long records, which would keep the shell waiting: an hour of 10 ms steps takes 0.8 s
/// (`bench/diagnose_hour`).
Verdict verdict_of(const fs::path& folder, Language language) {
  constexpr std::uintmax_t kMostBytes = 64 << 20;
  std::error_code failure;
  if (fs::file_size(folder / "record.db", failure) > kMostBytes || failure) {
    return {};
  }
  const diagnose::Diagnosis diagnosis = diagnose::diagnose_record(folder, {}, language);
  if (diagnosis.time.train <= 0) {
    return {};
  }
  return {diagnose::answer(diagnosis, language), tune::fixable(folder, diagnosis).changes > 0};
}

/// The last line: where the record is, and the commands that read it. `why_no_window`: nothing if none was asked for,
/// empty if there is one.
std::string closing_line(const std::string& folder, bool named, bool fixable,
                         const std::optional<std::string>& why_no_window, Language language) {
  const std::string record = named ? " " + folder : "";
  const std::string next = "unidle diagnose" + record + (fixable ? ", unidle fix" + record : "");
  if (!why_no_window) {
    return translate(language, "recorded {}; next: {}", folder, next);
  }
  const std::string trace = "unidle trace" + record;
  return why_no_window->empty() ? translate(language, "recorded {}; next: {}, {}", folder, next, trace)
                                : translate(language, "recorded {}; next: {}; no profiler window was recorded: {}",
                                            folder, next, *why_no_window);
}

/// Prints the last lines, about a finished record.
void tell(const Arguments& arguments, const knobs::Reach& reached, const fs::path& folder, bool named) {
  const Language language = chosen_language(arguments.language);
  std::optional<std::string> why_no_window;
  Verdict verdict;
  try {
    if (reached.command != arguments.command) {
      say(translate(language, "ran {}", shell_joined(mask_secrets(reached.command))));
    }
    print_applied_settings(reached, folder, language);
    if (arguments.trace) {
      why_no_window = why_not_traced(folder, language);
    }
    verdict = verdict_of(folder, language);
    if (!verdict.sentence.empty()) {
      say(verdict.sentence);
    }
    if (!arguments.trackers.empty()) {
      send_to_trackers(folder, diagnose::diagnose_record(folder, {}, language), folder / "report.html",
                       arguments.trackers, language);
    }
  } catch (const std::exception& failure) {  // the command's own result stays
    say(failure.what());
  }
  say(closing_line(folder.string(), named, verdict.fixable, why_no_window, language));
}

int execute(const Arguments& arguments) {
  const bool named = !arguments.record.empty();
  observe::Options options;
  options.capture = !arguments.no_capture;
  options.timeout_s = arguments.timeout_s;
  const knobs::Settings asked = knobs::apply_settings(arguments.apply);
  const knobs::Reach reached = knobs::reach({arguments.command}, asked);
  options.argv = reached.command;
  options.run_options = knobs::to_json(knobs::RunOptions{arguments.steps, arguments.timeout_s, reached.at_run_time});
  if (!reached.at_run_time.empty()) {
    options.environment["UNIDLE_APPLY"] = knobs::encode_apply(reached.at_run_time);
  }
  if (reached.at_run_time.contains("cache.features")) {
    options.environment["UNIDLE_CACHE"] = fs::absolute(cache::default_folder()).string();
  }
  if (arguments.steps) {
    options.environment["UNIDLE_MAX_STEPS"] = std::to_string(*arguments.steps);
  }
  if (arguments.trace) {
    options.environment["UNIDLE_TRACE_STEPS"] = std::to_string(*arguments.trace);
    options.before_close = trace::analyse_traces;
  }
  if (arguments.kernels) {
    options.environment["CUDA_INJECTION64_PATH"] = trace::library_to_inject(program_folder()).string();
  }
  std::error_code ignored;
  options.configured = diagnose::configured_run_settings(options.argv, fs::current_path(ignored),
                                                         merged_environment(options.environment), asked);
  std::optional<record::RunFolder> made;
  options.record =
      named ? fs::path(arguments.record)
            : made.emplace(arguments.name.empty() ? record::run_name(arguments.command) : arguments.name).path();
  if (!named) {
    options.recording = record::link_latest;  // at once, since we may be killed
  }
  const observe::Result result = observe::run(options);
  if (fs::exists(result.record / "record.db", ignored)) {
    if (!named) {
      record::link_latest(result.record);  // another run may have started meanwhile
    }
    tell(arguments, reached, result.record, named);
  }
  return result.status.shell_code();
}

std::function<int()> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("-o,--output", arguments->record, "Folder of the record (default: .unidle/runs/<UTC time>-<name>)")
      ->type_name("RECORD");
  app.add_option("--name", arguments->name, "Name of the run in .unidle/runs (default: the name of the program)");
  app.add_flag("--no-capture", arguments->no_capture,
               "Leave the command's output streams alone; the record then lacks its last output");
  app.add_option("--timeout", arguments->timeout_s, "End the command after SECONDS (TERM, five seconds later KILL)")
      ->check(positive_number())
      ->type_name("SECONDS");
  app.add_option("--apply", arguments->apply,
                 "Change a setting of the running program; KNOB=VALUE, or a file of them; may be repeated")
      ->type_name("KNOB=VALUE|FILE")
      ->allow_extra_args(false)
      ->trigger_on_parse(false);
  app.add_option("--steps", arguments->steps, "Stop the program cleanly after N optimiser steps")
      ->check(positive_number())
      ->type_name("N");
  auto* trace = app.add_option("--trace", arguments->trace,
                               "Record N steps after start-up with the torch profiler; unidle trace shows them")
                    ->check(CLI::Range(1, 1000))
                    ->type_name("N");
  app.add_flag("--kernels", arguments->kernels,
               "Watch the kernels of the whole run through CUPTI; a profiler in the program then sees none")
      ->excludes(trace);
  add_tracker_option(app, arguments->trackers);
  add_language_option(app, arguments->language);
  app.add_option("command", arguments->command, "The command and its arguments, after --")
      ->required()
      ->type_name("CMD");
  app.positionals_at_end();
  return [arguments] { return execute(*arguments); };
}

}  // namespace

const Subcommand& run() {
  static const Subcommand kCommand = {"run", "Run a training command and record what it does",
                                      "Output, exit code and signals are those of the command.\n\nExamples:\n"
                                      "  unidle run -- python train.py --epochs 3\n"
                                      "  unidle run -o /tmp/before -- ./train config.yaml\n"
                                      "  unidle run --timeout 600 -- torchrun train.py\n"
                                      "  unidle run --steps 200 --apply loader.workers=4 -- python train.py\n"
                                      "  unidle run --trace 10 -- python train.py\n"
                                      "  unidle run --tracker wandb -- python train.py",
                                      setup};
  return kCommand;
}

}  // namespace unidle::cli::commands
