#include "unidle/tune/advice/suggestions.h"

#include <fmt/format.h>

#include <cmath>

#include "unidle/base/json.h"
#include "unidle/diagnose/policy.h"
#include "unidle/knobs/knob.h"

namespace unidle::tune {

namespace {

/// Share of training plus validation. Lower than the threshold of a finding, because the search measures the gain.
constexpr double kWorthRarer = 0.2;

std::optional<knobs::Value> value_of_fix(const diagnose::Fix& fix, bool allow_semantic) {
  const knobs::Knob* knob = knobs::find_knob(fix.knob);
  if (knob == nullptr || fix.to.is_null()) {
    return std::nullopt;
  }
  const bool semantic = fix.fix_class == knobs::KnobClass::kSemantic || knob->knob_class == knobs::KnobClass::kSemantic;
  if (semantic && !allow_semantic) {
    return std::nullopt;
  }
  return knobs::parse_value(*knob, plain_text(fix.to));
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
      const std::optional<knobs::Value> value = value_of_fix(fix, allow_semantic);
      if (!value) {
        continue;
      }
      if (fix.knob.starts_with("batch.")) {
        batch.changes.set(fix.knob, *value);
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

std::optional<Suggestion> rarer_validation(const diagnose::Diagnosis& diagnosis, const knobs::Settings& effective) {
  const double loop_s = diagnosis.time.train + diagnosis.time.validate;
  const long long every = effective.integer("validation.every");
  if (!effective.contains("validation.every") || every < 1 || diagnosis.time.train <= 0 ||
      diagnosis.time.validate < kWorthRarer * loop_s) {
    return std::nullopt;
  }
  const double rarer_by = diagnose::longer_validation_interval(diagnosis.time.train, diagnosis.time.validate,
                                                               diagnose::Policy{}.validation_target);
  const auto wanted = static_cast<long long>(std::ceil(static_cast<double>(every) * rarer_by));
  return Suggestion{{{"validation.every", wanted}},
                    "validation",
                    fmt::format("takes {:.0f} % of the loop", 100 * diagnosis.time.validate / loop_s),
                    diagnosis.time.validate / loop_s};
}

}  // namespace unidle::tune
