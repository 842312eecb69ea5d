#include "unidle/cli/trackers.h"

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>

#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/log.h"
#include "unidle/base/process.h"
#include "unidle/experiment/last_line_of.h"
#include "unidle/language/translator.h"
#include "unidle/record/note_types.h"
#include "unidle/record/record.h"
#include "unidle/report/page.h"

namespace unidle::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> kTrackers = {"mlflow", "tensorboard", "wandb"};
constexpr std::chrono::minutes kLimit{2};

/// The interpreter of the process that trained, of any observed process otherwise.
std::string interpreter(const std::vector<record::Note>& notes) {
  std::string any = "python3";
  std::string training;
  record::each_note<record::NoteType::kShim>(notes, [&](const auto& note) {
    const std::string program = note.text("executable");
    if (!program.empty()) {
      (note.text("role") == "train" ? training : any) = program;
    }
  });
  return training.empty() ? any : training;
}

/// The runs that the program wrote with this tracker.
nlohmann::json runs_of(const std::vector<record::Note>& notes, std::string_view tracker) {
  nlohmann::json runs = nlohmann::json::array();
  record::each_note<record::NoteType::kTracker>(notes, [&](const auto& note) {
    if (note.text("tracker") == tracker) {
      runs.push_back({{"run", note.value("run")},
                      {"server", note.value("server")},
                      {"project", note.value("project")},
                      {"entity", note.value("entity")},
                      {"mode", note.value("mode")},
                      {"folder", note.value("folder")}});
    }
  });
  return runs;
}

void send(const std::string& tracker, const std::string& python, const nlohmann::json& told, Language language) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "told.json";
  write_file_atomic(file, json_text(told));
  Command command;
  command.argv = {python, (program_folder().parent_path() / "share/unidle/python/trackers").string(), tracker, file};
  command.in = Command::Stream::kNull;
  const Finished finished = run_to_end(command, kLimit);
  if (finished.timed_out) {
    say(translate(language, "nothing was sent to {}: no answer within {} s", tracker,
                  std::chrono::seconds(kLimit).count()));
  } else if (!finished.status.ok()) {
    say(translate(language, "nothing was sent to {}: {}", tracker,
                  experiment::last_line_of(finished.err, finished.out)));
  } else {
    say(translate(language, "sent to {}: {}", tracker, experiment::last_line_of("", finished.out)));
  }
}

}  // namespace

void add_tracker_option(CLI::App& app, std::vector<std::string>& trackers) {
  app.add_option("--tracker", trackers,
                 "Add the diagnosis and the report to the run that the program writes with this experiment tracker, "
                 "or to a new run; may be repeated")
      ->allow_extra_args(false)
      ->check(CLI::IsMember(std::vector<std::string>(kTrackers.begin(), kTrackers.end())));
}

void send_to_trackers(const fs::path& record, const diagnose::Diagnosis& diagnosis, const fs::path& page,
                      const std::vector<std::string>& trackers, Language language) {
  try {
    if (diagnosis.time.train <= 0) {
      for (const std::string& tracker : trackers) {
        say(translate(language, "nothing was sent to {}: nothing was trained", tracker));
      }
      return;
    }
    if (std::error_code failure; !fs::exists(page, failure)) {
      write_file_atomic(page, report::page({{account::load_run(record), diagnosis}}, language));
    }
    const std::vector<record::Note> notes = record::Reader(record).notes();
    nlohmann::json told = {{"name", record.filename().string()},
                           {"folder", fs::absolute(record).string()},
                           {"page", fs::absolute(page).string()},
                           {"diagnosis", diagnose::to_json_with_texts(diagnosis, language)}};
    for (const std::string& tracker : trackers) {
      told["runs"] = runs_of(notes, tracker);
      send(tracker, interpreter(notes), told, language);
    }
  } catch (const std::exception& failure) {  // the result of the observed command stays
    say(failure.what());
  }
}

}  // namespace unidle::cli
