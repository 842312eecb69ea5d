#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/wait_for_batch.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// Whether this run keeps results. Some programs report it. A map-style loader that reports nothing recomputes them:
/// otherwise its later samples would be cheap.
std::optional<bool> kept(const Context& context) {
  if (const auto cached = detail::effective_on(context, "cache.features")) {
    return cached;
  }
  const auto& loader = context.signals.loader;
  return loader && loader->map_style ? std::optional(!*loader->map_style) : std::nullopt;
}

/// The wait for input after the first epoch, as a share of the wall time.
double late_wait(const Context& context, double epochs) {
  const double of_later_epochs = *context.steady_input * (1 - 1 / epochs);
  if (!context.signals.late_input_s || context.signals.wall_s <= 0) {
    return of_later_epochs;
  }
  return std::min(of_later_epochs, *context.signals.late_input_s / context.signals.wall_s);
}

/// What training can gain from its second epoch on.
double later_bound(const Context& context, double kept_part) {
  const Signals& signals = context.signals;
  const double of_all = *context.steady_input / *context.train;
  const bool known = signals.late_input_s && signals.late_training_s.value_or(0) > 0;
  return amdahl(kept_part * (known ? std::min(of_all, *signals.late_input_s / *signals.late_training_s) : of_all));
}

/// Adds what is known of the results: they are the same, which function may compute them, or nothing.
void add_evidence(const Context& context, Finding& finding, double later_s) {
  const Signals& signals = context.signals;
  const std::string epochs = format_number(*context.epochs);
  const std::string repeated = format_share(1 - 1 / *context.epochs);
  const SampleFacts samples = signals.samples.value_or(SampleFacts{});
  if (samples.differ()) {
    finding.evidence.push_back(
        context.say("one sample costs {}, and the run made {} passes over the data", format_seconds(later_s), epochs));
    finding.evidence.push_back(context.say(
        "{} of {} samples that were made again differed: at most the results of single functions can be kept",
        samples.compared_samples - samples.identical_samples, samples.compared_samples));
  } else if (samples.compared_samples > 0) {
    finding.evidence.push_back(context.say(
        "one sample costs {}, and the run made {} passes over the data: {} of that work repeated earlier results",
        format_seconds(later_s), epochs, repeated));
    finding.evidence.push_back(context.say(
        "{} samples were compared when they were made again: all were the same to the byte", samples.compared_samples));
  } else {
    finding.evidence.push_back(
        context.say("one sample costs {}, and the run made {} passes over the data: {} of that work made samples that "
                    "had been made before",
                    format_seconds(later_s), epochs, repeated));
  }
}

Evaluation evaluate_recomputed_features(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  const auto cached = kept(context);
  if (!cached) {
    return Missing{"whether the results of per-sample work are kept (effective cache.features)"};
  }
  if (*cached) {
    return Nothing{};
  }
  if (!context.epochs) {
    return Missing{"how many passes over the data the run made"};
  }
  if (*context.epochs <= policy.min_epochs) {
    return Nothing{};
  }
  if (!signals.sample_s) {
    return Missing{"what one sample costs"};
  }
  if (!context.steady_input) {
    return Missing{context.no_steps};
  }
  const double later_s = signals.late_sample_s.value_or(*signals.sample_s);
  if (!detail::samples_can_be_kept(context)) {
    return Nothing{};  // samples differ each epoch: nothing is recomputed
  }
  const double kept_part = detail::part_to_keep(signals) * detail::made_in_wait(context).value_or(1);
  const double share = late_wait(context, *context.epochs) * kept_part;
  if (std::min(later_s, *signals.sample_s) < policy.expensive_sample_s || share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.later_bound = later_bound(context, kept_part);
  add_evidence(context, finding, later_s);
  finding.where = detail::where_set(context, "cache.features");
  if (const auto hot = detail::hot_sample_function(signals); hot && !finding.where) {
    finding.where = detail::place(hot->where);
    finding.evidence.push_back(
        context.say("{} of the sample work is spent in {}", format_share(hot->share), hot->text()));
  }
  if (!finding.where) {
    finding.where = detail::place_of_samples(signals);
  }
  knobs::Change keep = detail::keep_samples_fix(context, "keep what the first epoch computed for the later ones");
  if (!keep.from) {
    keep.from = "off";  // later samples cost as much as the first ones
  }
  if (const auto function = detail::cacheable_within(signals)) {
    keep.reason +=
        context.say("; for later runs too: @unidle.cached above {} ({})", function->function, function->where);
  }
  finding.fixes.push_back(std::move(keep));
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
          "first. Where samples differ each time, only the part of a function whose results can be kept counts. "
          "Workers would hide the same wait, so the shares of the two findings overlap and do not add up.",
      .thresholds =
          "Samples from expensive_sample_s (1 ms), more than min_epochs (1) passes, from warning_share (10 %) of the "
          "wall time; critical from critical_share (30 %).",
      .needs =
          "the effective cache.features (or a loader that fetches samples by key), passes over the data, the cost of "
          "one sample, step times with the wait for input; whether a sample is the same when it is made again, where "
          "that was seen",
      .proposes = "cache.features",
      .evaluate = evaluate_recomputed_features,
      .counts = Counts::kHostTime,
      .waits = "for sample work that is done again in every epoch",
      .explains = {Symptom::kSlowSamples},
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
