// Short expectations about one rule, for tests.
#pragma once

#include <gtest/gtest.h>

#include "unidle/diagnose/testing/sample_signals.h"

namespace unidle::diagnose::testing {

inline bool silent(std::string_view id, const Signals& signals) {
  return std::holds_alternative<Nothing>(ask(id, signals));
}

/// The missing signal; empty when the rule did not abstain.
inline std::string missing(std::string_view id, const Signals& signals) {
  const Evaluation evaluation = ask(id, signals);
  const auto* abstained = std::get_if<Missing>(&evaluation);
  return abstained == nullptr ? "" : abstained->signal;
}

/// The finding; one without evidence when the rule did not fire.
inline Finding fired(std::string_view id, const Signals& signals) {
  const Evaluation evaluation = ask(id, signals);
  const auto* finding = std::get_if<Finding>(&evaluation);
  EXPECT_NE(finding, nullptr) << id << " did not fire";
  return finding == nullptr ? Finding{} : *finding;
}

inline const knobs::Change* fix_of(const Finding& finding, std::string_view knob) {
  for (const knobs::Change& fix : finding.fixes) {
    if (fix.knob == knob) {
      return &fix;
    }
  }
  return nullptr;
}

}  // namespace unidle::diagnose::testing
