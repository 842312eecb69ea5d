// The result of an optimisation, for people.
#include <fmt/format.h>

#include "unidle/base/units.h"
#include "unidle/language/sentence.h"
#include "unidle/language/translator.h"
#include "unidle/tune/output/result.h"

namespace unidle::tune {

namespace {

std::string metrics_text(const TrialResult& result) {
  std::string text;
  for (const auto& [name, value] : result.metrics) {
    text += fmt::format(" {} {}", name, format_number(value));
  }
  return text;
}

class Page {
 public:
  Page(const OptimizeResult& result, Language language) : result_(result), translator_{language} {}

  std::string text() {
    if (!result_.diff.empty()) {
      const knobs::ConfigFile after = knobs::ConfigFile::from_text(result_.after, result_.config);
      text_ = explained_diff(result_.before, after, result_.changes, result_.config, translator_.language);
    }
    result_.outcome ? add_outcome(*result_.outcome) : add_prediction();
    return std::move(text_);
  }

 private:
  void line(const std::string& text) { text_ += text + "\n"; }
  std::string sentence(const std::string& english) const { return translate_sentence(translator_.language, english); }

  void add_prediction() {
    line(result_.changes.empty()
             ? translator_.say("{}: nothing to change that can be told without measuring", result_.config)
             : "");
    for (const std::string& left : result_.left) {
      line(translator_.say("left alone: {}", sentence(left)));
    }
    add_notes();
    line(translator_.say("Not measured. With --benchmark every change is measured, and kept only when it pays."));
  }

  void add_outcome(const TunerOutcome& outcome) {
    text_ += text_.empty() ? "" : "\n";
    add_trials(outcome.trials);
    line("");
    for (const std::string& refused : outcome.not_taken) {
      line(translator_.say("not taken: {}", sentence(refused)));
    }
    for (const knobs::Change& change : result_.changes) {
      if (change.knob.starts_with("validation.")) {
        line(translator_.say("{} only changes how often you look; training is the same", change.knob));
      }
    }
    add_notes();
    line(sentence(outcome.conclusion));
    if (result_.program) {
      add_advice(*result_.program);
    }
    if (!result_.record.empty()) {
      line(translator_.say("record: {}", result_.record.string()));
    }
  }

  void add_notes() {
    for (const std::string& note : result_.notes) {
      line(translator_.say("note: {}", sentence(note)));
    }
  }

  void add_trials(const std::vector<LoggedTrial>& trials) {
    const auto row = [&](const auto& number, const std::string& stage, const std::string& rate, const std::string& loss,
                         const std::string& verdict, const std::string& what) {
      line(fmt::format("{:>5}  {:<15}  {:>9}  {:>8}  {:<13}  {}", number, stage, rate, loss, verdict, what));
    };
    row(translator_.word("trial"), translator_.word("stage"), translator_.word("samples/s"), "loss",
        translator_.word("verdict"), translator_.word("what"));
    for (const LoggedTrial& trial : trials) {
      const TrialResult& result = trial.result;
      row(trial.index, stage_in_words(trial, translator_.language), result.ok ? format_number(result.rate) : "-",
          result.loss ? format_number(*result.loss) : "-", translator_.word(trial.verdict),
          sentence(trial.why) + metrics_text(result));
    }
  }

  /// What the user should do now.
  void add_advice(const ProgramResult& program) {
    line(translator_.say("your files: {}", sentence(std::string(in_words(program.plan.protection)))));
    if (!program.run.empty()) {
      line("\n" + translator_.say("Without touching the program:"));
      line("  " + program.run);
      line(translator_.say("In the program:"));
    }
    for (const CodeChange& change : program.code) {
      line(fmt::format("  {}{}", change.where.empty() ? "" : change.where + ": ", change.code));
    }
    if (!program.patch.empty()) {
      text_ += "\n" + program.patch;
    }
  }

  const OptimizeResult& result_;
  Translator translator_;
  std::string text_;
};

}  // namespace

std::string to_text(const OptimizeResult& result, Language language) { return Page(result, language).text(); }

std::string stage_in_words(const LoggedTrial& trial, Language language) {
  const bool is_unit = trial.stage == "batch" && language != Language::kEnglish;  // in the catalogue, "batch" counts
  return std::string(translate(language, is_unit ? "batch size" : std::string_view(trial.stage)));
}

std::string one_line(const LoggedTrial& trial, Language language) {
  const Translator translator{language};
  const std::string stage = stage_in_words(trial, language);
  const bool has_reason = !trial.stage.starts_with("verify") && trial.stage != "baseline";
  const std::string what = has_reason ? translate_sentence(language, trial.why) : stage;
  if (!trial.result.ok) {
    return translator.say("trial {}: {}: {}", trial.index, stage, what);
  }
  const std::string rate = format_number(trial.result.rate);
  const std::string time = format_seconds(trial.result.seconds);
  return trial.verdict == "baseline" || trial.verdict == "winner"
             ? translator.say("trial {}: {} samples/s ({}, {})", trial.index, rate, what, time)
             : translator.say("trial {}: {} samples/s, {} ({}, {})", trial.index, rate, translator.word(trial.verdict),
                              what, time);
}

}  // namespace unidle::tune
