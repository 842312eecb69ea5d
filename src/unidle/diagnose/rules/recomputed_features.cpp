#include <fmt/format.h>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  const auto cached = detail::effective_on(context, "cache.features");
  if (!cached) {
    return Missing{"whether the results of per-sample work are kept (effective cache.features)"};
  }
  if (*cached) {
    return Nothing{};
  }
  if (!signals.epochs) {
    return Missing{"how often the data was passed over"};
  }
  if (*signals.epochs <= policy.min_epochs) {
    return Nothing{};
  }
  if (!signals.sample_s) {
    return Missing{"what one sample costs"};
  }
  if (!context.input) {
    return Missing{context.no_steps};
  }
  const double repeated = 1 - 1 / *signals.epochs;
  const double share = *context.input * repeated;
  if (*signals.sample_s < policy.expensive_sample_s || share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding;
  finding.share = share;
  finding.severity = severity_of(share, policy);
  finding.speedup_bound = amdahl(share);
  finding.where = detail::where_set(context, "cache.features");
  finding.evidence = {
      fmt::format("one sample costs {}, and the data was passed over {} times: {} of that work gave results that were "
                  "there before",
                  format_seconds(*signals.sample_s), format_number(*signals.epochs), format_share(repeated)),
      fmt::format("the steps wait for it {} of the wall time", format_share(*context.input)),
  };
  finding.fixes.push_back(detail::make_fix(context, "cache.features", "memory", FixClass::kExact,
                                           "keep what the first epoch computed for the later ones"));
  return finding;
}

}  // namespace

const Rule& recomputed_features() {
  static const Rule kRule{
      .id = "recomputed-features",
      .verdict = Verdict::kInputBound,
      .title = "The same per-sample work is done again in every epoch",
      .topic = "repeated sample work",
      .explanation =
          "Decoding a picture or predicting a feature gives the same result in every epoch. Kept, it is computed once, "
          "and later epochs only read it. The share is the part of the input wait that falls to epochs after the "
          "first; "
          "workers would hide the same wait, so the shares of the two findings overlap and do not add up.",
      .thresholds =
          "Samples from expensive_sample_s (1 ms), more than min_epochs (1) passes, from warning_share (10 %) of the "
          "wall "
          "time; critical from critical_share (30 %).",
      .needs =
          "the effective cache.features, passes over the data, the cost of one sample, step times with the wait for "
          "input",
      .proposes = "cache.features",
      .evaluate = evaluate,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
