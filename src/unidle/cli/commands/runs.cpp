// unidle runs: lists and removes recorded runs, and packs a run into one file.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unidle/base/characters.h"
#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/layout.h"
#include "unidle/base/printable.h"
#include "unidle/base/sqlite.h"
#include "unidle/base/terminal.h"
#include "unidle/base/units.h"
#include "unidle/cli/language_option.h"
#include "unidle/cli/subcommand.h"
#include "unidle/record/listing.h"

namespace unidle::cli::commands {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using record::RunFilter;
using record::RunSummary;

struct Arguments {
  std::string format = "text";
  std::string folder;
  bool bad = false;
  std::string since;
  std::string before;
  std::string user;
  std::vector<std::string> names;
  bool yes = false;
  std::string output;
  std::string language;
};

fs::path folder_of(const Arguments& arguments) {
  return arguments.folder.empty() ? home_folder() / "runs" : fs::path(arguments.folder);
}

/// Parses "2026-11-01", "2026-11-01T12", "2026-11-01T12:30", or an age: "7d", "12h". Nothing when the option is not
/// given.
std::optional<std::int64_t> moment_of(const std::string& option, const std::string& text) {
  if (text.empty()) {
    return std::nullopt;
  }
  if (const auto ago = parse_seconds(text); ago && is_letter(text.back())) {
    return system_clock().wall_ns() - nanoseconds(*ago);
  }
  for (const char* form : {"%Y-%m-%d", "%Y-%m-%dT%H", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"}) {
    if (const auto time = parse_utc(text, form)) {
      return time;
    }
  }
  throw Error(ErrorCode::kUsage, option, "'" + text + "' is not a time",
              "write 2026-11-01, 2026-11-01T12:30, 12h or 7d");
}

RunFilter filter_of(const Arguments& arguments) {
  return {.bad = arguments.bad,
          .since_ns = moment_of("--since", arguments.since),
          .before_ns = moment_of("--before", arguments.before),
          .user = arguments.user};
}

std::vector<RunSummary> chosen_runs(const Arguments& arguments) {
  const RunFilter filter = filter_of(arguments);
  std::vector<RunSummary> runs = record::list_runs(folder_of(arguments));
  std::erase_if(runs, [&](const RunSummary& run) { return !filter.admits(run); });
  return runs;
}

json to_json(const RunSummary& run) {
  json object = {{"name", run.name},
                 {"path", run.path.string()},
                 {"user", run.user},
                 {"bytes", run.bytes},
                 {"started_utc", run.started_utc.empty() ? json() : json(run.started_utc)},
                 {"seconds", run.seconds ? json(*run.seconds) : json()},
                 {"outcome", run.outcome},
                 {"exit", run.exit},
                 {"command", run.command},
                 {"tier", run.tier}};
  if (run.search) {
    object["search"] = {{"gain", run.search->gain ? json(*run.search->gain) : json()},
                        {"nothing_to_gain", run.search->nothing_to_gain}};
  }
  if (!run.error.empty()) {
    object["error"] = run.error;
  }
  return object;
}

std::string outcome_of(const RunSummary& run, Language language) {
  if (!run.search) {
    return printable_line(translate(language, run.outcome));
  }
  return run.search->gain              ? translate(language, "{}: {:.2f}x", run.search->by, *run.search->gain)
         : run.search->nothing_to_gain ? translate(language, "{}: nothing to gain", run.search->by)
                                       : translate(language, "{}: inconclusive", run.search->by);
}

/// `text` with blanks up to `width` columns.
std::string padded(const std::string& text, int width) {
  return text + std::string(static_cast<std::size_t>(std::max(0, width - display_width(text))), ' ');
}

std::string command_of(const RunSummary& run, Language language) {
  if (!run.error.empty()) {
    return translate(language, "cannot be read: {}", printable_line(run.error));
  }
  std::string text;
  for (const json& word : run.command.is_array() ? run.command : json::array()) {
    text += (text.empty() ? "" : " ") + plain_text(word);
  }
  return printable_line(text);
}

std::string count_of(std::size_t runs, Language language) {
  return runs == 1 ? std::string(translate(language, "1 run")) : translate(language, "{} runs", runs);
}

void print_table(const std::vector<RunSummary>& runs, const Arguments& arguments) {
  const Language language = chosen_language(arguments.language);
  if (runs.empty()) {
    const bool all = !filter_of(arguments).chooses();
    const std::string folder = folder_of(arguments).string();
    print_to(stdout, "{}\n",
             all ? translate(language, "No recorded runs in {}. Record one: unidle run -- CMD ...", folder)
                 : translate(language, "No such runs in {}.", folder));
    return;
  }
  const std::string name_title(translate(language, "NAME"));
  const std::string user_title(translate(language, "USER"));
  const std::string outcome_title(translate(language, "OUTCOME"));
  int name = display_width(name_title);
  int user = display_width(user_title);
  int outcome = display_width(outcome_title);
  std::uint64_t bytes = 0;
  for (const RunSummary& run : runs) {
    name = std::max(name, display_width(printable_line(run.name)));
    user = std::max(user, display_width(printable_line(run.user)));
    outcome = std::max(outcome, display_width(outcome_of(run, language)));
    bytes += run.bytes;
  }
  print_to(stdout, "{}  {}  {} {:>12} {:>9}  {}\n", padded(name_title, name), padded(user_title, user),
           padded(outcome_title, outcome), translate(language, "TIME"), translate(language, "SIZE"),
           translate(language, "COMMAND"));
  for (const RunSummary& run : runs) {
    print_to(stdout, "{}  {}  {} {:>12} {:>9}  {}\n", padded(printable_line(run.name), name),
             padded(printable_line(run.user), user), padded(outcome_of(run, language), outcome),
             run.seconds ? format_seconds(*run.seconds) : "-", format_bytes(run.bytes), command_of(run, language));
  }
  print_to(stderr, "{}, {}\n", count_of(runs.size(), language), format_bytes(bytes));  // scripts read the table
}

int list(const Arguments& arguments) {
  const std::vector<RunSummary> runs = chosen_runs(arguments);
  if (arguments.format == "json") {
    json all = json::array();
    std::transform(runs.begin(), runs.end(), std::back_inserter(all), to_json);
    print_to(stdout, "{}\n", json_text(json{{"schema", "unidle.runs/1"}, {"runs", all}}));
  } else {
    print_table(runs, arguments);
  }
  return 0;
}

/// The listed run of that name, or a run in a folder elsewhere.
fs::path run_of(const Arguments& arguments, const std::string& name) {
  const fs::path listed = folder_of(arguments) / name;
  return fs::exists(status_of(listed)) ? listed : fs::path(name);
}

int remove(const Arguments& arguments) {
  const Language language = chosen_language(arguments.language);
  const bool filtered = filter_of(arguments).chooses();
  if (arguments.names.empty() && !filtered) {
    throw Error(ErrorCode::kUsage, "runs rm", "no run is named",
                "name the runs to delete, or choose them by filters (--bad, --before ...)");
  }
  if (!arguments.names.empty() && filtered) {
    throw Error(ErrorCode::kUsage, "runs rm", "takes names or filters (--bad, --before ...), not both");
  }
  std::vector<fs::path> paths;
  for (const std::string& name : arguments.names) {
    paths.push_back(run_of(arguments, name));
  }
  if (filtered) {
    for (const RunSummary& run : chosen_runs(arguments)) {
      if (run.outcome != "running" && record::is_record(run.path)) {
        paths.push_back(run.path);
      }
    }
  }
  if (filtered && !arguments.yes) {
    for (const fs::path& path : paths) {
      print_to(stdout, "{}\n", printable_line(path.string()));
    }
    print_to(stderr, "unidle: {}\n",
             translate(language, "nothing was removed; --yes removes {}", count_of(paths.size(), language)));
    return 0;
  }
  std::optional<Error> refused;  // the others are removed all the same
  std::size_t removed = 0;
  for (const fs::path& path : paths) {
    try {
      record::remove_run(path);
      ++removed;
    } catch (const Error& failure) {
      refused = refused ? refused : failure;
    }
  }
  record::repair_latest(folder_of(arguments));
  if (removed > 0 || !refused) {
    print_to(stderr, "unidle: {}\n", translate(language, "{} removed", count_of(removed, language)));
  }
  if (refused) {
    throw *refused;
  }
  return 0;
}

int export_one(const Arguments& arguments) {
  const fs::path from = run_of(arguments, arguments.names.front());
  const std::string file = arguments.output.empty() ? from.filename().string() + ".db" : arguments.output;
  record::export_run(from, file);
  print_to(stdout, "{}\n", file);
  return 0;
}

void add_filters(CLI::App& app, Arguments& arguments) {
  app.add_option("--folder", arguments.folder, "The folder of the records; several people may share one")
      ->type_name("DIR");
  app.add_flag("--bad", arguments.bad, "Only runs that failed, timed out, were stopped or cut off, or cannot be read");
  app.add_option("--since", arguments.since,
                 "Only runs that began at this time or later, e.g. 2026-11-01, or 12h or 7d ago")
      ->type_name("TIME");
  app.add_option("--before", arguments.before, "Only runs that began earlier")->type_name("TIME");
  app.add_option("--user", arguments.user, "Only runs of this user")->type_name("NAME");
}

std::function<int()> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  auto action = std::make_shared<int (*)(const Arguments&)>(list);
  add_filters(app, *arguments);
  add_language_option(app, arguments->language);
  app.add_option("--format", arguments->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  CLI::App* rm = app.add_subcommand("rm", "Remove the named records, or those that the options select");
  rm->add_option("NAME", arguments->names, "Names of the list, or folders");
  add_filters(*rm, *arguments);
  add_language_option(*rm, arguments->language);
  rm->add_flag("--yes", arguments->yes, "Remove what the options select; without it they are only listed");
  rm->callback([action] { *action = remove; });
  CLI::App* exported = app.add_subcommand("export", "Write a record as one file, which every command reads");
  exported->add_option("NAME", arguments->names, "A name of the list, or a folder")->required()->expected(1);
  exported->add_option("--folder", arguments->folder, "The folder of the records")->type_name("DIR");
  exported->add_option("-o,--output", arguments->output, "The file to write; NAME.db by default")->type_name("FILE");
  exported->callback([action] { *action = export_one; });
  return [arguments, action] {
    sqlite::disable_sqlite_memory_statistics();
    return (*action)(*arguments);
  };
}

}  // namespace

const Subcommand& runs() {
  static const Subcommand kCommand = {"runs", "List, remove and export recorded runs",
                                      "Examples:\n"
                                      "  unidle runs\n"
                                      "  unidle runs --bad --since 7d\n"
                                      "  unidle runs --folder /shared/records --user ada --format json\n"
                                      "  unidle runs rm 20261101-120000-train\n"
                                      "  unidle runs rm --before 30d --yes\n"
                                      "  unidle runs export 20261101-120000-train -o run.db && unidle diagnose run.db",
                                      setup};
  return kCommand;
}

}  // namespace unidle::cli::commands
