// unidle runs: lists recorded runs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/printable.h"
#include "unidle/base/terminal.h"
#include "unidle/base/units.h"
#include "unidle/cli/subcommand.h"
#include "unidle/record/record.h"

namespace unidle::cli::commands {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The record of a folder as one JSON object; "error" in it when it cannot be read.
json describe(const fs::path& folder) {
  json run = {{"name", folder.filename().string()},
              {"path", folder.string()},
              {"started_utc", nullptr},
              {"seconds", nullptr},
              {"outcome", "unknown"},
              {"exit", nullptr},
              {"command", nullptr},
              {"tier", nullptr}};
  try {
    const record::Reader reader(folder);
    const auto start_ns = reader.meta(record::meta::kStartNs);
    const auto end_ns = reader.meta(record::meta::kEndNs);
    for (const std::string_view key : {record::meta::kStartedUtc, record::meta::kOutcome, record::meta::kExit,
                                       record::meta::kCommand, record::meta::kTier}) {
      if (const auto value = reader.meta(key)) {
        run[std::string(key)] = *value;
      }
    }
    if (start_ns && end_ns) {
      run["seconds"] = seconds(end_ns->get<std::int64_t>() - start_ns->get<std::int64_t>());
    }
  } catch (const std::exception& error) {
    run["error"] = error.what();
  }
  return run;
}

std::vector<json> all_runs() {
  std::vector<json> runs;
  const fs::path folder = home_folder() / "runs";
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    if (std::error_code unknown; !entry->is_symlink(unknown) && entry->is_directory(unknown)) {
      runs.push_back(describe(entry->path()));
    }
  }
  if (failure && fs::exists(status_of(folder))) {
    throw system_error(ErrorCode::kInput, folder.string(), "cannot be read", failure.value());
  }
  std::sort(runs.begin(), runs.end(), [](const json& a, const json& b) { return a["name"] > b["name"]; });
  return runs;
}

std::string command_of(const json& run) {
  if (run.contains("error")) {
    return "cannot be read: " + printable_line(run["error"].get<std::string>());
  }
  std::string text;
  for (const json& word : run["command"].is_array() ? run["command"] : json::array()) {
    text += (text.empty() ? "" : " ") + plain_text(word);
  }
  return printable_line(text);
}

std::string text_or_dash(const json& value) { return value.is_string() ? value.get<std::string>() : "-"; }

void print_table(const std::vector<json>& runs) {
  if (runs.empty()) {
    print_to(stdout, "No recorded runs in {}. Record one: unidle run -- CMD ...\n", (home_folder() / "runs").string());
    return;
  }
  std::size_t width = 4;
  for (const json& run : runs) {
    width = std::max(width, run["name"].get<std::string>().size());
  }
  print_to(stdout, "{:<{}}  {:<10} {:>12}  {}\n", "NAME", width, "OUTCOME", "TIME", "COMMAND");
  for (const json& run : runs) {
    const std::string time = run["seconds"].is_number() ? format_seconds(run["seconds"].get<double>()) : "-";
    print_to(stdout, "{:<{}}  {:<10} {:>12}  {}\n", printable_line(run["name"].get<std::string>()), width,
             printable_line(text_or_dash(run["outcome"])), time, command_of(run));
  }
}

std::function<int()> setup(CLI::App& app) {
  auto format = std::make_shared<std::string>("text");
  app.add_option("--format", *format, "text or json")->check(CLI::IsMember({"text", "json"}));
  return [format] {
    const std::vector<json> runs = all_runs();
    if (*format == "json") {
      const json document = {{"schema", "unidle.runs/1"}, {"runs", runs}};
      print_to(stdout, "{}\n", json_text(document));
    } else {
      print_table(runs);
    }
    return 0;
  };
}

}  // namespace

const Subcommand& runs() {
  static const Subcommand kCommand = {"runs", "list recorded runs, the newest first",
                                      "Examples:\n  unidle runs\n  unidle runs --format json", setup};
  return kCommand;
}

}  // namespace unidle::cli::commands
