// A rule: one cause of idleness, one file in rules/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "unidle/diagnose/context.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/diagnose/policy.h"
#include "unidle/diagnose/signals.h"

namespace unidle::diagnose {

struct Nothing {};  // looked, and it is not the cause
struct Missing {
  std::string signal;
};  // could not look
using Evaluation = std::variant<Nothing, Missing, Finding>;

/// Whose time a rule's share counts. On a GPU, host time counts only up to the device's idle time.
enum class Counts { kUnset, kHostTime, kDeviceTime, kOther };

/// Everything about a rule: general code reads these properties and knows no rule by its name. Texts are English;
/// translate() gives other languages.
struct Rule {
  std::string id;
  /// Of a run that this rule leads. kUnknown: that of the next finding; if none has one, by where the time went.
  Verdict verdict;
  std::string title;        // a few words
  std::string topic;        // one or two words: what is fine when the rule finds nothing
  std::string explanation;  // one paragraph for a person
  std::string thresholds;   // the thresholds and where they come from
  std::string needs;        // signals in words
  std::string proposes;     // what to do, in words
  Evaluation (*evaluate)(const Context& context, const Policy& policy);

  Counts counts = Counts::kUnset;  // every rule must set it
  int leads = 0;                   // place before all other findings, from 1; 0: by severity and share
  std::string hint_title = {};     // title of a finding that is only a hint, when `title` would overstate it

  /// The answer when this rule leads, with {device}, {share} and {where}; empty: the verdict's sentence.
  std::string sentence = {};
  /// What an input-bound run waits for when this rule leads: "Your GPU waits 40 % of each step ...".
  std::string waits = {};

  std::optional<Symptom> shows = {};                  // symptom; its findings are folded into findings that explain it
  std::vector<Symptom> explains = {};                 // findings with these symptoms are folded into this rule's
  bool about_samples = false;                         // about how samples are made and brought to the step
  bool costly_samples = false;                        // samples that cost less would cure it
  bool about_line = false;                            // what it proposes depends on the code at its place
  bool about_memory = false;                          // memory runs out, or nearly
  std::vector<std::string> Signals::*told = nullptr;  // the field with extra evidence from the source of the signals
};

/// All rules, one per file in rules/, by file name. Generated at configure time.
const std::vector<const Rule*>& all_rules();

/// nullptr when the rule does not exist.
const Rule* find_rule(std::string_view id);

/// The title of a finding of the rule; a hint has a more careful one.
std::string_view title_of(const Finding& finding, const Rule& rule);

}  // namespace unidle::diagnose
