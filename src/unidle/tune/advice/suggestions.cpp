#include "unidle/tune/advice/suggestions.h"

#include <fmt/format.h>

#include <cmath>

#include "unidle/diagnose/policy.h"
#include "unidle/knobs/knob.h"

namespace unidle::tune {

namespace {

/// Share of training plus validation. Lower than the threshold of a finding, because the search measures the gain.
constexpr double kWorthRarer = 0.2;

std::optional<knobs::Value> value_of_fix(const knobs::Change& fix, bool allow_semantic) {
  const knobs::Knob* knob = knobs::find_knob(fix.knob);
  if (knob == nullptr || !fix.to) {
    return std::nullopt;
  }
  const bool semantic =
      fix.knob_class == knobs::KnobClass::kSemantic || knob->knob_class == knobs::KnobClass::kSemantic;
  if (semantic && !allow_semantic) {
    return std::nullopt;
  }
  return knobs::parse_value(*knob, fix.to->to_text());  // it may be what a file says
}

Proposal proposal_of(const diagnose::Finding& finding, const std::string& how) {
  return {{}, finding.id + ": " + how, kMeasuredFirst + finding.share.value_or(0), true};
}

void add_proposals(const diagnose::Finding& finding, bool allow_semantic, std::vector<Proposal>& proposals) {
  Proposal batch = proposal_of(finding, {});
  for (const knobs::Change& fix : finding.fixes) {
    const std::optional<knobs::Value> value = value_of_fix(fix, allow_semantic);
    if (!value) {
      continue;
    }
    if (fix.knob.starts_with("batch.")) {
      batch.reason += batch.changes.empty() ? fix.reason : "";
      batch.changes.set(fix.knob, *value);
    } else {
      proposals.push_back(proposal_of(finding, fix.reason));
      proposals.back().changes.set(fix.knob, *value);
    }
  }
  if (!batch.changes.empty()) {
    proposals.push_back(std::move(batch));
  }
}

}  // namespace

std::vector<Proposal> suggestions_of(const diagnose::Diagnosis& diagnosis, bool allow_semantic) {
  std::vector<Proposal> suggestions;
  for (const diagnose::Finding& finding : diagnosis.findings) {
    if (finding.severity != diagnose::Severity::kInfo) {
      add_proposals(finding, allow_semantic, suggestions);
    }
  }
  return suggestions;
}

std::vector<Proposal> hints_of(const diagnose::Diagnosis& diagnosis, bool allow_semantic) {
  std::vector<Proposal> hints;
  for (const diagnose::Finding& finding : diagnosis.findings) {
    if (finding.severity == diagnose::Severity::kInfo) {
      add_proposals(finding, allow_semantic, hints);
    }
  }
  for (Proposal& hint : hints) {
    hint.safe = false;
  }
  return hints;
}

std::optional<Proposal> rarer_validation(const diagnose::Diagnosis& diagnosis, const knobs::Settings& effective) {
  const double loop_s = diagnosis.time.train + diagnosis.time.validate;
  const long long every = effective.integer("validation.every");
  if (!effective.contains("validation.every") || every < 1 || diagnosis.time.train <= 0 ||
      diagnosis.time.validate < kWorthRarer * loop_s) {
    return std::nullopt;
  }
  const double rarer_by = diagnose::longer_validation_interval(diagnosis.time.train, diagnosis.time.validate,
                                                               diagnose::Policy{}.validation_target);
  const auto wanted = static_cast<long long>(std::ceil(static_cast<double>(every) * rarer_by));
  const double share = diagnosis.time.validate / loop_s;
  return Proposal{{{"validation.every", wanted}},
                  fmt::format("validation: takes {:.0f} % of the loop", 100 * share),
                  kMeasuredFirst + share,
                  true};
}

}  // namespace unidle::tune
