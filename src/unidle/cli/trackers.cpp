#include "unidle/cli/trackers.h"

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/log.h"
#include "unidle/base/numbers.h"
#include "unidle/base/process.h"
#include "unidle/base/secrets.h"
#include "unidle/cli/signal_stop.h"
#include "unidle/experiment/last_line_of.h"
#include "unidle/language/translator.h"
#include "unidle/record/note_types.h"
#include "unidle/record/record.h"
#include "unidle/report/page.h"

namespace unidle::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> kTrackers = {"mlflow", "tensorboard", "wandb"};

/// How long one tracker may take.
std::chrono::seconds limit() {
  constexpr std::chrono::minutes kUsual{2};
  const char* given = std::getenv("UNIDLE_TRACKER_SECONDS");
  const auto seconds = given != nullptr ? parse_number<int>(given) : std::nullopt;
  return seconds && *seconds > 0 ? std::chrono::seconds(*seconds) : kUsual;
}

/// The interpreter of the process that trained, of any observed process otherwise.
std::string interpreter(const std::vector<record::Note>& notes) {
  std::string any = "python3";
  std::string training;
  record::each_note<record::NoteType::kTracker>(notes, [&](const auto& note) {
    if (const std::string program = note.text("executable"); !program.empty()) {
      any = program;
    }
  });
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
                      {"name", note.value("name")},
                      {"mode", note.value("mode")},
                      {"folder", note.value("folder")}});
    }
  });
  return runs;
}

/// The command's exit code as a shell sees it; null if it is unknown.
nlohmann::json exit_code(const record::Reader& reader) {
  const auto exit = reader.meta(record::meta::kExit);
  return exit && exit->contains("code")
             ? nlohmann::json(ExitStatus{exit->value("code", 0), exit->value("signal", 0)}.shell_code())
             : nlohmann::json();
}

/// Repeats what the sender said of each run; returns how many it spoke of.
int say_results(const std::string& tracker, const std::string& out, Language language) {
  constexpr std::string_view kSent = "sent: ";
  constexpr std::string_view kNotSent = "not sent: ";
  int said = 0;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    const std::string masked = mask_secrets(std::string_view(line));
    if (masked.starts_with(kSent)) {
      say(translate(language, "sent to {}: {}", tracker, masked.substr(kSent.size())));
    } else if (masked.starts_with(kNotSent)) {
      say(translate(language, "not sent to {}: {}", tracker, masked.substr(kNotSent.size())));
    } else {
      continue;  // the tracker's package prints, too
    }
    ++said;
  }
  return said;
}

void send(const std::string& tracker, const std::string& python, const nlohmann::json& told, const SignalStop& stop,
          Language language) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "told.json";
  write_file_atomic(file, json_text(told));
  Command command;
  command.argv = {python, (program_folder().parent_path() / "share/unidle/python/trackers").string(), tracker, file};
  command.in = Command::Stream::kNull;
  say(translate(language, "sending to {}; Ctrl-C stops that", tracker));
  const Finished finished = run_to_end(command, limit(), stop.token());
  const int said = say_results(tracker, finished.out, language);
  if (stop.signal() != 0) {
    say(translate(language, "stopped: it is not known what else {} got", tracker));
  } else if (finished.timed_out) {
    say(translate(language, "{} did not answer within {} s: it is not known what else it got", tracker,
                  limit().count()));
  } else if (!finished.status.ok() || said == 0) {
    say(translate(language, "not sent to {}: {}", tracker, experiment::last_line_of(finished.err, "")));
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
    const record::Reader reader(record);
    const std::vector<record::Note> notes = reader.notes();
    nlohmann::json told = {{"name", record.filename().string()},
                           {"folder", fs::absolute(record).string()},
                           {"page", fs::absolute(page).string()},
                           {"exit_code", exit_code(reader)},
                           {"diagnosis", diagnose::to_json_with_texts(diagnosis, language)}};
    const SignalStop stop;  // the exit code stays that of the observed command
    for (std::size_t i = 0; i < trackers.size() && stop.signal() == 0; ++i) {
      told["runs"] = runs_of(notes, trackers[i]);
      send(trackers[i], interpreter(notes), told, stop, language);
    }
  } catch (const std::exception& failure) {  // the result of the observed command stays
    say(failure.what());
  }
}

}  // namespace unidle::cli
