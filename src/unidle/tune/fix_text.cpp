// What `unidle fix` says, for people and for programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "unidle/base/layout.h"
#include "unidle/base/secrets.h"
#include "unidle/base/shell.h"
#include "unidle/base/units.h"
#include "unidle/knobs/changed_lines.h"
#include "unidle/knobs/knob.h"
#include "unidle/knobs/run_options.h"
#include "unidle/language/sentence.h"
#include "unidle/language/translator.h"
#include "unidle/record/listing.h"
#include "unidle/tune/advice/code_patch.h"
#include "unidle/tune/fix.h"

namespace unidle::tune {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kNarrowest = 40;
/// Below it, a second digit is needed to tell a gain from none.
constexpr double kSmallGain = 1.1;

std::string budget_text(double budget_s) {
  return std::fmod(budget_s, 60) == 0 ? fmt::format("{:.0f} min", budget_s / 60) : format_seconds(budget_s);
}

class FixPage {
 public:
  FixPage(const FixPlan& plan, int width, Language language)
      : plan_(plan), width_(std::max(width, kNarrowest)), translator_{language} {}

  std::string before(bool trials_follow) {
    add(plan_.answer);
    line("");
    add(translator_.say("Record: {}", plan_.record.string()));
    add(translator_.say("Command: {}, in {}", shell_joined(mask_secrets(plan_.command)), plan_.folder.string()));
    add_notes(plan_.notes);
    line("");
    if (plan_.attempts.empty()) {
      add(plan_.by_hand.empty() ? translator_.say("No finding proposes a change.")
                                : translator_.say("None of the proposed changes can be tried automatically."));
    } else {
      add(translator_.say("To try alternating with the unchanged program, in at most {} (--budget):",
                          budget_text(plan_.budget_s)));
      add_attempts();
    }
    if (!trials_follow) {
      add_by_hand();
    }
    return std::move(text_);
  }

  std::string after(const OptimizeResult& result, const fs::path& here) {
    const ProgramResult& program = *result.program;
    line("");
    for (const std::string& refused : result.outcome->not_taken) {
      add(translator_.say("not taken: {}", sentence(refused)));
    }
    add_conclusion(*result.outcome);
    for (const knobs::Change& change : result.changes) {
      add_gained(change);
    }
    if (std::ranges::any_of(result.changes, [](const auto& change) { return change.knob == "cache.features"; })) {
      add(translator_.say("cache.features gains from the second epoch on: a run of few epochs gains less."));
    }
    if (!program.run.empty()) {
      line("\n" + translator_.say("Without touching the program:"));
      add_command((here == plan_.folder ? "" : "cd " + shell_quoted(plan_.folder.string()) + " && ") + program.run);
    }
    add_code(result, here);
    add_notes(result.notes);
    add_by_hand();
    return std::move(text_);
  }

 private:
  void line(const std::string& text) { text_ += text + "\n"; }
  void add(const std::string& text, int indent = 0, std::string_view mark = "") {
    text_ += block(text, width_, indent, mark);
  }
  void add_command(const std::string& command) { text_ += command_block(command, width_, 2, ""); }
  std::string sentence(const std::string& english) const { return translate_sentence(translator_.language, english); }

  void add_notes(const std::vector<std::string>& notes) {
    for (const std::string& note : notes) {
      line(translator_.say("note: {}", sentence(note)));  // may hold a patch: not wrapped
    }
  }

  std::string depends(const knobs::Change& change) const {
    return change.depends.empty() ? "" : translator_.say("; depends on {}", sentence(change.depends));
  }

  /// In the words of the program, where they are known, and unidle's name of the setting.
  void add_change(const knobs::Change& change, const std::string& where) {
    if (change.in_program) {
      const std::string from = change.from ? fmt::format("{} -> ", *change.from) : "";
      add(fmt::format("{}{} [{}: {}{}, {}]{}{}", diagnose::in_words(*change.in_program, translator_.language),
                      where.empty() ? "" : ", " + where, change.knob, from, change.to->to_text(),
                      translator_.word(knobs::to_string(change.knob_class)),
                      change.reason.empty() ? "" : translator_.word(": "), sentence(change.reason)) +
              depends(change),
          2, "- ");
      return;
    }
    std::string text = change.knob + ": " + (change.from ? fmt::format("{} -> ", *change.from) : "");
    text += fmt::format("{} ({})", change.to->to_text(), translator_.word(knobs::to_string(change.knob_class)));
    text += where.empty() ? "" : translator_.say(" at {}", where);
    text += change.reason.empty() ? "" : translator_.word(": ") + sentence(change.reason);
    add(text + depends(change), 2, "- ");
  }

  /// As it was announced, without the reason, which was said before.
  void add_gained(knobs::Change change) {
    const auto tried = std::ranges::find_if(plan_.attempts, [&](const Attempt& attempt) {
      return attempt.change.knob == change.knob && attempt.change.to == change.to;
    });
    const bool known = tried != plan_.attempts.end();
    change.in_program = known ? tried->change.in_program : std::nullopt;
    change.reason.clear();
    add_change(change, known && change.in_program ? tried->where : "");
  }

  void add_attempts() {
    for (const Attempt& attempt : plan_.attempts) {
      add_change(attempt.change, attempt.where);
    }
  }

  void add_by_hand() {
    if (plan_.by_hand.empty()) {
      return;
    }
    line("");
    add(translator_.say("Left to you:"));
    for (const ByHand& left : plan_.by_hand) {
      const std::string colon = translator_.word(": ");
      const std::string change = left.setting.empty() ? sentence(left.words) : left.setting;
      add(translator_.word(left.title) + colon + (change.empty() ? "" : change + colon) + sentence(left.what) +
              (left.where.empty() ? "" : translator_.say("; see {}", left.where)),
          2, "- ");
    }
    add(translator_.say("After a change of yours, this shows what it gained:"));
    const auto by_option =
        std::ranges::find_if(plan_.by_hand, [](const ByHand& left) { return !left.command.empty(); });
    std::set<std::string> changed;  // by the person
    for (const ByHand& left : plan_.by_hand) {
      changed.insert(left.knob);
    }
    const std::string as_before = knobs::in_words(plan_.run_options, changed);
    const std::string command =
        by_option != plan_.by_hand.end() ? by_option->command : shell_joined(mask_secrets(plan_.command));
    add_command(fmt::format("unidle run {}-- {} && unidle compare", as_before, command));
  }

  void add_conclusion(const TunerOutcome& outcome) {
    const auto& found = outcome.verification;
    if (outcome.changes.empty() || !found || found->winner.size() < kPairsOfAnInterval) {
      add(sentence(outcome.conclusion));
      return;
    }
    const int digits = found->interval.low < kSmallGain ? 2 : 1;
    const auto times = [digits](double ratio) { return fmt::format("{:.{}f}", ratio, digits); };
    add(translator_.say("{}x as fast ({} to {}), measured in {} pairs.", times(found->ratio),
                        times(found->interval.low), times(found->interval.high), found->winner.size()));
    add_whole_run(found->ratio);
    const std::size_t rest = outcome.conclusion.find("; ");
    if (rest != std::string::npos) {
      add(sentence(outcome.conclusion.substr(rest + 2)));
    }
  }

  /// What the gain makes of the recorded run, where what it does not touch is a part worth mentioning.
  void add_whole_run(double ratio) {
    constexpr double kWorthMentioning = 0.1;
    const account::PhaseTimes& time = plan_.time;
    const double loop_s = time.train + time.validate + time.checkpoint;
    const double rest_s = time.startup + time.other;
    if (rest_s > kWorthMentioning * (loop_s + rest_s)) {
      add(translator_.say("The recorded run of {} would take about {}: its start-up stays.",
                          format_seconds(loop_s + rest_s), format_seconds(rest_s + loop_s / ratio)));
    }
  }

  /// The changes as lines of the program, and as a patch.
  void add_code(const OptimizeResult& result, const fs::path& here) {
    const ProgramResult& program = *result.program;
    if (!program.code.empty()) {
      line(translator_.say("In the program:"));
    }
    for (const CodeChange& change : program.code) {
      line(fmt::format("  {}{}", change.where.empty() ? "" : change.where + ": ", change.code));
    }
    if (program.patch.empty()) {
      return;
    }
    line("");
    for (std::string_view rest = program.patch; !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      line(knobs::excerpt(rest.substr(0, end), ""));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    line("");
    const std::string apply = patch_options(program.patch, plan_.folder);
    if (!result.record.empty() && !apply.empty()) {
      const std::string file = shell_quoted((result.record / record::kPatch).string());
      const std::string there = here == plan_.folder ? "" : "cd " + shell_quoted(plan_.folder.string()) + " && ";
      line(translator_.say("The patch is a file; apply it with:"));
      add_command(fmt::format("{}patch {} -i {}", there, apply, file));
    }
  }

  const FixPlan& plan_;
  int width_;
  Translator translator_;
  std::string text_;
};

json json_of(const Attempt& attempt) {
  json document = to_json(attempt.change);
  document["finding"] = attempt.finding;
  document["where"] = attempt.where.empty() ? json() : json(attempt.where);
  for (const char* key : {"gain", "depends", "paths"}) {
    document.erase(key);
  }
  return document;
}

}  // namespace

std::string to_text(const FixPlan& plan, bool trials_follow, int width, Language language) {
  return FixPage(plan, width, language).before(trials_follow);
}

std::string to_text(const FixPlan& plan, const OptimizeResult& result, const fs::path& here, int width,
                    Language language) {
  return FixPage(plan, width, language).after(result, here);
}

std::string fix_line(const LoggedTrial& trial, Language language) {
  const Translator translator{language};
  const std::string what =
      trial.changes.empty() ? translator.word("unchanged") : translator.say("with {}", knobs::describe(trial.changes));
  if (!trial.result.ok) {
    return translator.say("run {}: {}: failed: {}", trial.index, what, trial.result.problem);
  }
  const std::string rate = format_number(trial.own_rate > 0 ? trial.own_rate : trial.result.rate);
  const std::string time = format_seconds(trial.result.seconds);
  const bool judged = !trial.changes.empty() && trial.verdict != "winner" && trial.verdict != "turn";
  return judged ? translator.say("run {}: {}: {} samples/s, {} ({})", trial.index, what, rate,
                                 translator.word(trial.verdict), time)
                : translator.say("run {}: {}: {} samples/s ({})", trial.index, what, rate, time);
}

json to_json(const FixPlan& plan, const std::optional<OptimizeResult>& result) {
  json document = {{"schema", "unidle.fix/1"},
                   {"record", plan.record.string()},
                   {"command", mask_secrets(plan.command)},
                   {"folder", plan.folder.string()},
                   {"applied", plan.run_options.applied},
                   {"answer", plan.answer},
                   {"budget_s", plan.budget_s},
                   {"to_try", json::array()},
                   {"by_hand", json::array()},
                   {"notes", plan.notes},
                   {"tried", result.has_value()},
                   {"changes", json::array()},
                   {"trials", json::array()},
                   {"verification", nullptr},
                   {"not_taken", json::array()},
                   {"interrupted", false},
                   {"conclusion", ""},
                   {"run", nullptr},
                   {"code", json::array()},
                   {"patch", ""},
                   {"patch_file", nullptr},
                   {"search", nullptr}};
  for (const Attempt& attempt : plan.attempts) {
    document["to_try"].push_back(json_of(attempt));
  }
  for (const ByHand& left : plan.by_hand) {
    document["by_hand"].push_back({{"finding", left.finding},
                                   {"title", left.title},
                                   {"what", left.what},
                                   {"setting", left.setting.empty() ? json() : json(left.setting)},
                                   {"where", left.where.empty() ? json() : json(left.where)}});
  }
  if (!result) {
    return document;
  }
  const json search = to_json(*result);
  for (const char* key : {"changes", "trials", "verification", "not_taken", "interrupted", "conclusion"}) {
    document[key] = search[key];
  }
  for (const char* key : {"run", "code", "patch"}) {
    document[key] = search["program"][key];
  }
  for (const json& note : search["notes"]) {
    document["notes"].push_back(note);
  }
  document["search"] = search["record"];
  if (!result->record.empty() && !result->program->patch.empty()) {
    document["patch_file"] = (result->record / record::kPatch).string();
  }
  return document;
}

}  // namespace unidle::tune
