#include "unidle/tune/suggestions.h"

#include "unidle/base/json.h"
#include "unidle/knobs/knob.h"

namespace unidle::tune {

namespace {

std::optional<std::string> value_of_fix(const diagnose::Fix& fix, bool allow_semantic) {
  const knobs::Knob* knob = knobs::find_knob(fix.knob);
  if (knob == nullptr || fix.to.is_null()) {
    return std::nullopt;
  }
  const bool semantic =
      fix.fix_class == diagnose::FixClass::kSemantic || knob->knob_class == knobs::KnobClass::kSemantic;
  if (semantic && !allow_semantic) {
    return std::nullopt;
  }
  return knobs::canonical_value(*knob, plain_text(fix.to));
}

}  // namespace

std::vector<Suggestion> suggestions_of(const diagnose::Diagnosis& diagnosis, bool allow_semantic) {
  std::vector<Suggestion> suggestions;
  for (const diagnose::Finding& finding : diagnosis.findings) {
    if (finding.severity == diagnose::Severity::kInfo) {
      continue;
    }
    Suggestion batch{{}, finding.id, {}, finding.share.value_or(0)};
    for (const diagnose::Fix& fix : finding.fixes) {
      const std::optional<std::string> value = value_of_fix(fix, allow_semantic);
      if (!value) {
        continue;
      }
      if (fix.knob.starts_with("batch.")) {
        batch.changes[fix.knob] = *value;
        batch.how = batch.how.empty() ? fix.how : batch.how;
      } else {
        suggestions.push_back({{{fix.knob, *value}}, finding.id, fix.how, finding.share.value_or(0)});
      }
    }
    if (!batch.changes.empty()) {
      suggestions.push_back(std::move(batch));
    }
  }
  return suggestions;
}

void refuse_full_memory(const diagnose::Diagnosis& diagnosis, const Settings& changes, TrialResult& result) {
  if (!result.ok || !changes.contains("batch.size")) {
    return;
  }
  for (const diagnose::Finding& finding : diagnosis.findings) {
    if (finding.id == "memory-nearly-full" || finding.id == "allocator-retries" || finding.id == "out-of-memory") {
      result.ok = false;
      result.problem = finding.id + (finding.evidence.empty() ? "" : ": " + finding.evidence.front());
      return;
    }
  }
}

}  // namespace unidle::tune
