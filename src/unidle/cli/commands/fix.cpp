// `unidle fix`: what a record's findings propose, tried alternating with the unchanged program.
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/secrets.h"
#include "unidle/base/shell.h"
#include "unidle/base/terminal.h"
#include "unidle/cli/budget_option.h"
#include "unidle/cli/language_option.h"
#include "unidle/cli/signal_stop.h"
#include "unidle/cli/subcommand.h"
#include "unidle/cli/words_after.h"
#include "unidle/language/sentence.h"
#include "unidle/record/listing.h"
#include "unidle/record/record.h"
#include "unidle/tune/fix.h"

namespace unidle::cli::commands {

namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string record;
  std::vector<std::string> command;
  std::string budget;
  std::string format = "text";
  std::set<std::string> allow;
  bool dry_run = false;
  bool yes = false;
  bool fresh = false;
  std::string language;

  bool json() const { return format == "json"; }
  Language speaks() const { return json() ? Language::kEnglish : chosen_language(language); }
};

/// Of a command without a record, the newest record of that command; otherwise the latest.
fs::path newest_record(const std::vector<std::string>& command) {
  if (command.empty()) {
    return record::latest_run_folder();
  }
  for (const record::RunSummary& run : record::list_runs(home_folder() / "runs")) {
    if (run.command == nlohmann::json(mask_secrets(command))) {
      return run.path;
    }
  }
  throw Error(ErrorCode::kInput, shell_joined(mask_secrets(command)), "no record of this command is here",
              "record it: unidle run -- CMD ...; or name a record before --");
}

tune::FixOptions options_of(const Arguments& arguments) {
  tune::FixOptions options;
  options.record = fs::weakly_canonical(arguments.record.empty() ? newest_record(arguments.command)
                                                                 : record::find_run(arguments.record));
  options.command = arguments.command;
  options.budget_s = arguments.budget.empty() ? 0 : budget_seconds(arguments.budget);
  options.allow_semantic = arguments.allow.contains("semantic");
  options.may_write = arguments.yes;
  options.fresh = arguments.fresh;
  options.language = arguments.speaks();
  return options;
}

/// Everything that a program names is relative to its working folder, and so is the patch.
void enter(const fs::path& folder) {
  std::error_code failure;
  fs::current_path(folder, failure);
  if (failure) {
    throw system_error(ErrorCode::kInput, folder.string(), "cannot be entered", failure.value());
  }
}

void print_json(const tune::FixPlan& plan, const std::optional<tune::OptimizeResult>& result) {
  print_to(stdout, "{}\n", json_text(tune::to_json(plan, result)));
}

int try_out(const Arguments& arguments, const tune::FixPlan& plan, const tune::FixOptions& options) {
  const Language language = arguments.speaks();
  const fs::path here = fs::current_path();
  enter(plan.folder);
  SignalStop stop;
  print_to(stderr, "{}\n",
           translate(language, "first comes a short run of the unchanged program; your files stay as they are"));
  tune::OptimizeResult result;
  try {
    const tune::Progress progress = {
        [&](const tune::LoggedTrial& trial) { print_to(stderr, "{}\n", tune::fix_line(trial, language)); },
        [&](const std::string& sentence) { print_to(stderr, "{}\n", translate_sentence(language, sentence)); }};
    result = tune::try_fix(plan, options, progress, stop.token());
  } catch (const Error& failure) {
    if (failure.code() != ErrorCode::kCancelled) {
      throw;
    }
    say_error("unidle", failure.what());
    return 128 + stop.signal();
  }
  if (arguments.json()) {
    print_json(plan, result);
  } else {
    print_to(stdout, "{}", tune::to_text(plan, result, here, terminal_width(stdout), language));
  }
  return result.outcome->interrupted ? 128 + stop.signal() : result.outcome->all_failed ? 1 : 0;
}

int run(const Arguments& given) {
  Arguments arguments = given;
  move_first_word(arguments.record, arguments.command);
  const tune::FixOptions options = options_of(arguments);
  const tune::FixPlan plan = tune::plan_fix(options);
  const bool last = arguments.dry_run || plan.attempts.empty();
  if (!arguments.json()) {
    print_to(stdout, "{}", tune::to_text(plan, !last, terminal_width(stdout), arguments.speaks()));
    flush_output();
  } else if (last) {
    print_json(plan, std::nullopt);
  }
  return last ? 0 : try_out(arguments, plan, options);
}

std::function<int()> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option(
      "record", arguments->record,
      "A record's folder, its record.db or its name; -1 is the newest by name; the latest record by default");
  app.add_option("--budget", arguments->budget,
                 "Time for all trials, e.g. 90s, 10m; by default the time of ten runs, within 5 to 30 minutes");
  app.add_option("--allow", arguments->allow, "semantic: also try settings that change what is trained")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"semantic"}));
  app.add_flag("--dry-run", arguments->dry_run, "Say what would be tried and exit");
  app.add_flag("--yes", arguments->yes, "Run trials even if nothing keeps them from overwriting your files");
  app.add_flag("--fresh", arguments->fresh, "Measure everything again instead of continuing a search that was stopped");
  app.add_option("--format", arguments->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  add_language_option(app, arguments->language);
  app.add_option("command", arguments->command,
                 "After --: the command to run instead of the recorded one; without a record, fix takes the newest one "
                 "of this command");
  return [arguments] { return run(*arguments); };
}

}  // namespace

const Subcommand& fix() {
  static const Subcommand kCommand{
      "fix",
      "Try what a diagnosis proposes, and prove the gain",
      "Examples:\n"
      "  unidle run -- python train.py && unidle fix\n"
      "  unidle fix --dry-run\n"
      "  unidle fix -1 --budget 10m\n"
      "  unidle fix .unidle/runs/latest --allow semantic\n"
      "  unidle fix latest -- python train.py --epochs 3\n",
      setup,
  };
  return kCommand;
}

}  // namespace unidle::cli::commands
