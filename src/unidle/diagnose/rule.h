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

/// Whose time a rule's share counts. On a GPU, what the host spends counts no more than the device idles.
enum class Counts { kUnsaid, kHostTime, kDeviceTime, kOther };

/// What a finding shows of a cause that may be another rule's. The finding is folded into that of a rule which explains
/// it.
enum class Symptom {
  kFailure,          // the run failed
  kSamplesInLoop,    // the training thread makes samples
  kWorkersBehind,    // workers are busy and batches late
  kWorkersCrowded,   // more workers than CPUs
  kBatchesInBursts,  // batches come late now and then
  kSlowSamples,      // samples cost too much for any number of workers
  kNoBatch,          // the device idles while the loop waits for a batch
  kFullMemory,       // device memory is nearly full
  kUseOfDevice,      // how the device in use is used
};

/// All that is true of a rule; general code asks for these and knows no rule by its name. Texts are English;
/// translate() gives other languages.
struct Rule {
  std::string id;
  Verdict verdict;          // what the run is when this leads; kUnknown: whatever the time went into
  std::string title;        // a few words
  std::string topic;        // one or two words: what is fine when the rule finds nothing
  std::string explanation;  // one paragraph for a person
  std::string thresholds;   // which, and where they come from
  std::string needs;        // signals in words
  std::string proposes;     // knobs in words
  Evaluation (*evaluate)(const Context& context, const Policy& policy);

  Counts counts = Counts::kUnsaid;  // every rule says it
  int leads = 0;                    // its place before all other findings, from 1; 0: by severity and share
  std::string hint_title = {};      // of a finding that is only a hint, where `title` would say too much

  /// The answer when this leads, with {device} and {share}; empty: the verdict's.
  std::string sentence = {};
  /// What an input-bound run waits for when this leads: "Your GPU waits 40 % of each step ...".
  std::string waits = {};

  std::optional<Symptom> shows = {};                  // its findings are folded into those that explain this
  std::vector<Symptom> explains = {};                 // findings that show these are folded into its own
  bool about_samples = false;                         // about how samples are made and brought to the step
  bool about_memory = false;                          // memory runs out, or nearly
  std::vector<std::string> Signals::*told = nullptr;  // evidence that whoever read the signals has for it
};

/// All rules, one a file in rules/, by file name. Generated at configure time.
const std::vector<const Rule*>& all_rules();

/// nullptr when there is no such rule.
const Rule* find_rule(std::string_view id);

}  // namespace unidle::diagnose
