// Sends diagnoses to experiment trackers.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/language/language.h"

namespace CLI {
class App;
}  // namespace CLI

namespace unidle::cli {

/// Adds the option --tracker, which may be repeated, to a command.
void add_tracker_option(CLI::App& app, std::vector<std::string>& trackers);

/// Adds figures, texts and the report of a record to the runs that its program logged with these trackers, or to new
/// runs, and prints one line for each run: where they are, or why they were not sent. Writes the report if `page` does
/// not exist. Runs the program's Python interpreter, which has the trackers' packages. Never throws. Takes at most two
/// minutes per tracker.
void send_to_trackers(const std::filesystem::path& record, const diagnose::Diagnosis& diagnosis,
                      const std::filesystem::path& page, const std::vector<std::string>& trackers, Language language);

}  // namespace unidle::cli
