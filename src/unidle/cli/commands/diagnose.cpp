#include "unidle/diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/base/layout.h"
#include "unidle/base/shell.h"
#include "unidle/base/terminal.h"
#include "unidle/cli/language_option.h"
#include "unidle/cli/number_option.h"
#include "unidle/cli/subcommand.h"
#include "unidle/diagnose/nodes.h"
#include "unidle/diagnose/pages.h"
#include "unidle/diagnose/policy_file.h"
#include "unidle/knobs/run_options.h"
#include "unidle/logs/job_files.h"
#include "unidle/logs/sniff.h"
#include "unidle/observe/recovery.h"
#include "unidle/record/record.h"
#include "unidle/report/slowdown.h"
#include "unidle/slurm/job_view.h"
#include "unidle/tune/fix.h"

namespace unidle::cli::commands {

namespace {

struct Options {
  std::vector<std::string> files;
  std::string job_id;
  std::string results = ".";
  std::string format = "text";
  std::string fail_on;
  std::string explain;
  std::string language;
  std::string policy;
  double price = 0;
  bool print_policy = false;
  bool rules_markdown = false;
  bool texts = false;
  bool verbose = false;
};

bool reached(const diagnose::Diagnosis& diagnosis, const std::string& level) {
  if (level.empty()) {
    return false;
  }
  return std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(), [&](const diagnose::Finding& finding) {
    return level == "info" || (level == "warning" && finding.severity != diagnose::Severity::kInfo) ||
           (level == "critical" && finding.severity == diagnose::Severity::kCritical);
  });
}

diagnose::Policy policy_of(const Options& options) {
  diagnose::Policy policy = options.policy.empty() ? diagnose::Policy{} : diagnose::read_policy(options.policy);
  policy.gpu_hour_price = options.price > 0 ? options.price : policy.gpu_hour_price;
  return policy;
}

diagnose::Diagnosis of_logs(const std::vector<std::filesystem::path>& files, const diagnose::Policy& policy,
                            Language language) {
  std::unique_ptr<Progress> progress;
  std::uint64_t size = 0;
  return diagnose::diagnose_logs(files, policy, language, [&](std::uint64_t taken, std::uint64_t of) {
    if (progress == nullptr || of != size || taken <= of / 100) {
      progress = std::make_unique<Progress>(std::string(translate(language, "reading")), of);
      size = of;
    }
    progress->update(taken);
  });
}

/// One record, or the records of a job's nodes.
diagnose::Diagnosis of_records(const std::vector<std::filesystem::path>& records, const diagnose::Policy& policy,
                               Language language) {
  for (const std::filesystem::path& record : records) {
    observe::recover(record);
  }
  return diagnose::diagnose_records(records, policy, language);
}

std::vector<std::filesystem::path> files_of_job(const Options& options) {
  const logs::JobFiles job = logs::find_job_files(options.job_id, options.results);
  std::vector<std::filesystem::path> files = job.all();
  for (const std::filesystem::path& file : files) {
    print_to(stderr, "unidle: job {}: {}{}\n", options.job_id, file.string(),
             file == job.by_time ? " (paired by its time)" : "");
  }
  return files;
}

diagnose::Diagnosis diagnosis_of(const Options& options) {
  // JSON is for programs: it is always English, but for what a program shows to people.
  const Language language =
      options.format == "json" && !options.texts ? Language::kEnglish : chosen_language(options.language);
  const diagnose::Policy policy = policy_of(options);
  if (!options.job_id.empty()) {
    const std::vector<std::filesystem::path> records = slurm::records_of(options.job_id, options.results);
    for (const std::filesystem::path& record : records) {
      print_to(stderr, "unidle: job {}: {}\n", options.job_id, record.string());
    }
    return records.empty() ? of_logs(files_of_job(options), policy, language) : of_records(records, policy, language);
  }
  if (options.files.empty()) {
    const std::filesystem::path latest = record::latest_run_folder();
    return of_records({latest}, policy, language);
  }
  std::vector<std::filesystem::path> files;
  std::ranges::transform(options.files, std::back_inserter(files), record::find_run);
  if (files.size() == 1) {
    if (const auto records = diagnose::records_of_nodes(files.front()); !records.empty()) {
      return of_records(records, policy, language);
    }
  }
  if (files.size() == 1 && logs::sniff(files.front()).kind == logs::Kind::kRecord) {
    return of_records(files, policy, language);
  }
  return of_logs(files, policy, language);
}

/// The folder of the one record that is diagnosed; empty for several, for those of a job, and for logs.
std::filesystem::path single_record(const Options& options) {
  if (!options.job_id.empty() || options.files.size() > 1) {
    return {};
  }
  const std::filesystem::path path =
      options.files.empty() ? record::latest_run_folder() : record::find_run(options.files.front());
  const std::vector<std::filesystem::path> records = diagnose::records_of_nodes(path);
  return records.size() == 1 ? record::Reader(records.front()).folder() : std::filesystem::path();
}

/// What to say of the record of a search, which holds trials instead of steps; empty for others.
std::string search_words(const Options& options, const diagnose::Diagnosis& diagnosis, Language language) {
  const std::filesystem::path record = diagnosis.steps_per_s ? std::filesystem::path() : single_record(options);
  return record.empty() || !record::Reader(record).meta("trials")
             ? ""
             : translate(language,
                         "This is the record of a search, which has no steps of its own: unidle report {} "
                         "shows its trials.",
                         shell_quoted(record.string()));
}

/// What the runs of the same command before this one say about its speed; empty if it is as fast.
std::string slowdown_words(const Options& options, Language language) {
  const std::filesystem::path record = single_record(options);
  const auto slowdown = record.empty() ? std::nullopt : report::slowdown_of(record);
  return slowdown ? report::in_words(*slowdown, Translator{language}) : "";
}

/// Whether the recorded command ran in the present folder, so that it runs here again.
bool ran_here(const std::filesystem::path& record) {
  try {
    std::error_code none;
    const auto folder = record::Reader(record).meta(record::meta::kFolder);
    return folder && folder->is_string() && folder->get<std::string>() == std::filesystem::current_path(none).string();
  } catch (const Error&) {  // the records of several nodes
    return false;
  }
}

/// A change that the user has to make before anything else.
struct OwnChange {
  std::string place;                 // file:line; empty if an option of the command makes it
  std::string command;               // of the changed program
  std::set<std::string> knobs = {};  // that it changes
};

/// Runs the changed program as the recorded run was, and compares it with the record.
std::string run_and_compare(const OwnChange& change, const knobs::RunOptions& options,
                            const std::filesystem::path& record, bool named) {
  std::error_code none;
  const bool newest = std::filesystem::is_symlink(record, none);  // will be another then
  const std::filesystem::path own = newest ? std::filesystem::canonical(record, none) : record;
  return fmt::format("unidle run {}-- {} && unidle compare{}", knobs::in_words(options, change.knobs), change.command,
                     named ? " " + shell_quoted(own.string()) + " latest" : "");
}

/// What the first sentence of the diagnosis asks for, if no trial can make it.
std::optional<OwnChange> own_change(const diagnose::Diagnosis& diagnosis, const tune::Fixable& fixable) {
  if (diagnosis.findings.empty() || diagnosis.findings.front().severity == diagnose::Severity::kInfo ||
      diagnosis.verdict == diagnose::Verdict::kFailed || diagnosis.command.empty() || fixable.of_first) {
    return std::nullopt;
  }
  const diagnose::Finding& first = diagnosis.findings.front();
  std::string place = first.where.value_or("");
  std::set<std::string> changed;
  std::ranges::transform(first.fixes, std::inserter(changed, changed.end()), &knobs::Change::knob);
  if (!first.fixes.empty()) {
    const knobs::Change& fix = first.fixes.front();
    if (fix.in_program && !fix.in_program->command.empty()) {
      return OwnChange{"", fix.in_program->command, changed};
    }
    const std::string line = fix.in_program ? fix.in_program->where : fix.written_at;
    place = line.empty() ? place : line;
  }
  const bool in_file = !place.empty() && !place.starts_with('<');
  return in_file ? std::optional(OwnChange{place, shell_joined(diagnosis.command), changed}) : std::nullopt;
}

/// The next commands, laid out: for a change by the user, and for those that can be tried; empty without either.
std::string next_commands(const Options& options, const diagnose::Diagnosis& diagnosis, int width, Language language) {
  const bool named = options.files.size() == 1;
  if (!options.job_id.empty() || options.files.size() > 1) {
    return {};
  }
  const std::filesystem::path record = named ? record::find_run(options.files.front()) : record::latest_run_folder();
  const tune::Fixable fixable = tune::fixable(record, diagnosis);
  const std::string name = named ? " " + shell_quoted(options.files.front()) : "";
  std::string text;
  if (const auto change = own_change(diagnosis, fixable); change && ran_here(record)) {
    const std::string then = run_and_compare(*change, diagnosis.run_options, record, named);
    text = change->place.empty() ? command_block(then, width, 0, translate(language, "next: "))
                                 : block(translate(language, "next: change {}, then", change->place), width, 0, "") +
                                       command_block(then, width, 2, "");
  }
  if (fixable.changes > 0) {
    const std::string tries =
        fixable.changes == 1
            ? std::string(translate(language, "tries 1 change alternating with the unchanged program"))
            : translate(language, "tries {} changes alternating with the unchanged program", fixable.changes);
    text += block(text.empty() ? translate(language, "next: unidle fix{} ({})", name, tries)
                               : translate(language, "or: unidle fix{} ({})", name, tries),
                  width, 0, "");
  }
  return text;
}

int run(const Options& options) {
  if (options.rules_markdown) {
    print_to(stdout, "{}", diagnose::rules_markdown());
    return 0;
  }
  if (options.print_policy) {
    print_to(stdout, "{}", diagnose::to_yaml(policy_of(options)));
    return 0;
  }
  const int width = terminal_width(stdout);
  if (!options.explain.empty()) {
    print_to(stdout, "{}", diagnose::explain(options.explain, width, chosen_language(options.language)));
    return 0;
  }
  const diagnose::Diagnosis diagnosis = diagnosis_of(options);
  if (options.price > 0 && !diagnosis.cost) {
    print_to(stderr, "unidle: --price: no cost is known: no GPU was used, or it is unknown how busy it was\n");
  }
  if (options.format == "json") {
    // Captured output may not be UTF-8.
    print_to(stdout, "{}\n",
             json_text(options.texts ? diagnose::to_json_with_texts(diagnosis, chosen_language(options.language))
                                     : diagnose::to_json(diagnosis)));
  } else {
    const Language language = chosen_language(options.language);
    if (const std::string search = search_words(options, diagnosis, language); !search.empty()) {
      print_to(stdout, "{}", block(search, width, 0, ""));
      return 0;
    }
    print_to(stdout, "{}", diagnose::to_text(diagnosis, width, use_colour(stdout), language, options.verbose));
    if (const std::string slower = slowdown_words(options, language); !slower.empty()) {
      print_to(stdout, "\n{}", block(slower, width, 0, ""));
    }
    const std::string next = next_commands(options, diagnosis, width, language);
    print_to(stdout, "{}{}", next.empty() ? "" : "\n", next);
  }
  return diagnosis.verdict == diagnose::Verdict::kFailed || reached(diagnosis, options.fail_on) ? 1 : 0;
}

std::function<int()> setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  auto* files =
      app.add_option("record", options->files,
                     "A record's folder, its record.db or its name, a folder with records of several nodes, or what "
                     "one run left behind (" +
                         logs::known_logs() + "); the latest record by default");
  auto* job = app.add_option("--job-id", options->job_id, "Diagnose the records or the logs of this job");
  app.add_option("--results", options->results, "Where to look for the records and logs of the job")
      ->needs(job)
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  job->excludes(files);
  app.add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_flag("-v,--verbose", options->verbose,
               "Also list all findings, the checks that found nothing, and those that lack a measurement");
  app.add_option("--fail-on", options->fail_on, "Exit with 1 if a finding has this severity or a higher one")
      ->check(CLI::IsMember({"info", "warning", "critical"}));
  app.add_option("--explain", options->explain, "Explain the rule with this id and exit")->type_name("ID");
  add_language_option(app, options->language);
  app.add_option("--price", options->price, "Price of a GPU hour: also print what the run and its idle time cost")
      ->check(positive_number());
  app.add_option("--policy", options->policy,
                 "Read thresholds from this YAML file (NAME: VALUE); those it leaves out keep their values");
  app.add_flag("--print-policy", options->print_policy, "Print all thresholds in the format of such a file and exit");
  app.add_flag("--texts", options->texts,
               "With --format json: also the text for people, its first sentence and the titles");
  app.add_flag("--rules-markdown", options->rules_markdown)->group("");
  return [options] { return run(*options); };
}

}  // namespace

const Subcommand& diagnose() {
  static const Subcommand kCommand{
      "diagnose",
      "Say why the device idles, the costliest cause first",
      "Examples:\n"
      "  unidle diagnose\n"
      "  unidle diagnose -v\n"
      "  unidle diagnose .unidle/runs/latest --format json\n"
      "  unidle diagnose --fail-on warning\n"
      "  unidle diagnose gpu_utilization.log slurm-4711.out\n"
      "  unidle diagnose --job-id 4711 --results results\n"
      "  unidle diagnose --explain ID",
      setup,
  };
  return kCommand;
}

}  // namespace unidle::cli::commands
