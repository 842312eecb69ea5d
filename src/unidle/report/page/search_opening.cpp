#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "unidle/base/json.h"
#include "unidle/language/sentence.h"
#include "unidle/report/comparison_words.h"
#include "unidle/report/page/code.h"
#include "unidle/report/page/opening.h"
#include "unidle/report/page/pairs.h"
#include "unidle/report/page/recorded_search.h"
#include "unidle/report/page/search.h"

namespace unidle::report {

namespace {

using tune::LoggedTrial;

/// The verified rates, of which the interval is that of their ratio.
Html verified_bars(const tune::Recorded& recorded, const Translator& translator) {
  const auto& found = recorded.verification;
  if (!proven(recorded) || found->baseline.empty() || !std::ranges::all_of(found->baseline, is_rate)) {
    return {};
  }
  const double before = median(found->baseline);
  return rate_bars({{translator.word("unchanged"), before, {}, "run0", ""},
                    {translator.word("changed"), before * found->ratio, scaled(interval_shown(*found), before), "run1",
                     fmt::format("({:.2f}x)", found->ratio)}},
                   translator.word("samples/s"));
}

/// What the search made of the setting: its reason, and of several changes the gain of this one.
Html reason_html(const knobs::Change& change, bool alone, const Translator& translator) {
  const std::string gain = change.gain && !alone ? translator.say(" (gain {:.2f}x)", *change.gain) : "";
  return element("p.quiet", translate_sentence(translator.language, change.reason),
                 gain.empty() ? Html() : element("b", gain));
}

/// The setting as lines of a diff, whatever writes it in the program.
Html setting_lines(const std::string& knob, const std::string& from, const std::string& to) {
  return lines_change_html(from.empty() ? std::vector<std::string>{} : std::vector{knob + ": " + from},
                           {knob + ": " + to});
}

Html written_changes(const std::vector<knobs::Change>& changes, bool in_patch, const Translator& translator) {
  Html out;
  for (const knobs::Change& change : changes) {
    const std::string from = change.from ? change.from->to_text() : "";
    out += element(
        "div.fix",
        in_patch
            ? element("p", element("code", fmt::format("{}: {} \u2192 {}", change.knob, from, change.to->to_text())))
            : setting_lines(change.knob, from, change.to->to_text()),
        reason_html(change, changes.size() == 1, translator));
  }
  return out;
}

/// The settings that the verified runs had, or else the last ones tried.
knobs::Settings tried_last(const std::vector<LoggedTrial>& trials) {
  knobs::Settings last;
  bool verified = false;
  for (const LoggedTrial& trial : trials) {
    if (!trial.changes.empty() && (trial.stage == "verify-winner" || !verified)) {
      last = trial.changes;
      verified = trial.stage == "verify-winner";
    }
  }
  return last;
}

Html tried_html(const tune::Recorded& recorded, const nlohmann::json& settings) {
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (const auto& [knob, value] : tried_last(recorded.trials)) {
    if (const std::string from = text_in(settings, knob); !from.empty()) {
      before.push_back(knob + ": " + from);
    }
    after.push_back(knob + ": " + value.to_text());
  }
  return after.empty() ? Html() : lines_change_html(before, after);
}

/// What to write where in the program.
Html code_places(const nlohmann::json& program, const Translator& translator) {
  Html places;
  const nlohmann::json code = program.is_object() && program.contains("code") ? program["code"] : nlohmann::json();
  for (const nlohmann::json& each : code.is_array() ? code : nlohmann::json::array()) {
    const std::string where = text_in(each, "where");
    const std::string text = text_in(each, "code");
    if (!text.empty()) {
      places += element("li", element("code", where.empty() ? text : where + ": " + text));
    }
  }
  return places.empty() ? places : element("p.quiet", translator.say("In the program:")) + element("ul", places);
}

Html changed_html(const account::RunData& run, const tune::Recorded& recorded, const Translator& translator) {
  const auto program = run.meta_value("program");
  const std::string patch = text_in(program, "patch");
  const std::string command = text_in(program, "run");
  if (recorded.changes.empty()) {
    const Html tried = tried_html(
        recorded, program.is_object() && program.contains("settings") ? program["settings"] : nlohmann::json());
    return tried.empty() ? tried : element("div.change", element("h2", translator.say("What was tried")), tried);
  }
  return element("div.change", element("h2", translator.say("What was changed")), place_html(run.meta_text("config")),
                 written_changes(recorded.changes, !patch.empty(), translator),
                 patch.empty() ? code_places(program, translator) : patch_html(patch),
                 command.empty()
                     ? Html()
                     : element("p.quiet", translator.say("Without touching the program:")) + command_to_copy(command));
}

/// The sentence of the record, or what its verification says.
std::string conclusion_of(const account::RunData& run, const Translator& translator) {
  if (std::string words = run.meta_text("conclusion"); !words.empty()) {
    return words;
  }
  const auto found = recorded_in(run).verification;
  return found ? verified_words(*found, translator) : translator.say("A search for faster settings");
}

/// How many trials, of what, when.
Html search_words(const account::RunData& run, const tune::Recorded& recorded, const Translator& translator) {
  std::vector<std::string> facts;
  if (!recorded.trials.empty()) {
    facts.push_back(recorded.trials.size() == 1 ? translator.say("1 run")
                                                : translator.say("{} runs", recorded.trials.size()));
  }
  const auto program = run.meta_value("program");
  if (program.is_object() && program.contains("command") && program["command"].is_array()) {
    std::string words;
    for (const auto& word : program["command"]) {
      words += (words.empty() ? "" : " ") + plain_text(word);
    }
    facts.push_back(words);
  }
  if (std::string started = run.meta_text(record::meta::kStartedUtc); !started.empty()) {
    facts.push_back(std::move(started));
  }
  return facts.empty() ? Html() : element("p.quiet", fmt::format("{}", fmt::join(facts, " \u00b7 ")));
}

}  // namespace

std::string search_answer(const account::RunData& run, const Translator& translator) {
  const std::string words = conclusion_of(run, translator);
  return with_capital(translate_sentence(translator.language, words.substr(0, words.find("; "))));
}

Html search_opening(const account::RunData& run, const Translator& translator) {
  const tune::Recorded recorded = recorded_in(run);
  const std::string words = conclusion_of(run, translator);
  const std::size_t rest = words.find("; ");
  const Html change = changed_html(run, recorded, translator);
  const Html bars = verified_bars(recorded, translator);
  const Html pairs = bars.empty() && recorded.verification ? pairs_html(*recorded.verification, translator) : Html();
  const Html gain =
      !bars.empty() ? element("div.gain", element("h2", translator.say("What it brought")), bars)
      : !pairs.empty()
          ? element("div.gain", element("h2", translator.say("What each pair gave; no gain is proven")), pairs)
          : Html();
  return (rest == std::string::npos
              ? Html()
              : element("p.deck", with_capital(translate_sentence(translator.language, words.substr(rest + 2))))) +
         search_words(run, recorded, translator) +
         (change.empty() && gain.empty() ? Html() : element("div.remedy", change, gain));
}

}  // namespace unidle::report
