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

namespace unidle::diagnose {

struct Nothing {};  // looked, and it is not the cause
struct Missing {
  std::string signal;
};  // could not look
using Evaluation = std::variant<Nothing, Missing, Finding>;

/// Texts are English; translate() gives other languages.
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
};

/// All rules, one a file in rules/, by file name. Generated at configure time.
const std::vector<const Rule*>& all_rules();

/// nullptr when there is no such rule.
const Rule* find_rule(std::string_view id);

}  // namespace unidle::diagnose
