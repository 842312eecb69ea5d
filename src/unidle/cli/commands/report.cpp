// unidle report: renders records as one HTML page.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "unidle/base/files.h"
#include "unidle/base/terminal.h"
#include "unidle/cli/language_option.h"
#include "unidle/cli/subcommand.h"
#include "unidle/cli/trackers.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/observe/recovery.h"
#include "unidle/record/record.h"
#include "unidle/report/page.h"

namespace unidle::cli::commands {

namespace {

struct Options {
  std::vector<std::string> records;
  std::string output;
  std::vector<std::string> trackers;
  std::string language;
};

int run(const Options& options) {
  const Language language = chosen_language(options.language);
  std::vector<std::string> records = options.records;
  if (records.empty()) {
    records.push_back(record::latest_run_folder().string());
  }
  std::vector<report::Entry> entries;
  for (const std::string& text : records) {
    const std::filesystem::path path = record::find_run(text);
    observe::recover(path);
    entries.push_back({account::load_run(path), diagnose::diagnose_record(path, {}, language)});
  }
  const std::filesystem::path output =
      options.output.empty() ? entries.front().run.folder / "report.html" : std::filesystem::path(options.output);
  write_file_atomic(output, report::page(entries, language));
  print_to(stdout, "{}\n", output.string());
  if (!options.trackers.empty()) {
    const report::Entry& first = entries.front();
    send_to_trackers(first.run.folder, *first.diagnosis, output, options.trackers, language);
  }
  return 0;
}

std::function<int()> setup(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("RECORD", options->records,
                 "Records: folders, their record.db or names; the first is compared "
                 "with the others; the latest record by default");
  app.add_option("-o,--output", options->output,
                 "The page to write; report.html in the first record's folder by default");
  add_tracker_option(app, options->trackers);
  add_language_option(app, options->language);
  return [options] { return run(*options); };
}

}  // namespace

const Subcommand& report() {
  static const Subcommand kCommand = {
      "report", "Make one self-contained HTML page, with plots, of one or more records",
      "Examples:\n"
      "  unidle report\n"
      "  unidle report before after -o gain.html\n"
      "  unidle report --tracker mlflow\n\n"
      "The page needs no network, and is complete without its script. Its path is printed on standard output.",
      setup};
  return kCommand;
}

}  // namespace unidle::cli::commands
