#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// The line with most stack samples in a loop of the forward pass; else where the model is called.
std::string place_of_loop(const Signals& signals) {
  constexpr std::int64_t kFewest = 5;  // stack samples
  const PythonPlace* most = nullptr;
  for (const PythonPlace& place : signals.python_places) {
    if (place.in_loop && place.looks >= kFewest && (most == nullptr || place.looks > most->looks)) {
      most = &place;
    }
  }
  return most == nullptr ? signals.model_where : most->where;
}

Evaluation evaluate_slices_in_loop(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!context.on_cpu) {
    return Nothing{};  // a GPU fills a hundred times as fast
  }
  if (!signals.step || !signals.step_s || !context.train) {
    return Missing{context.no_steps};
  }
  if (!signals.slices) {
    return Missing{"how much memory the backward pass fills for slices of tensors"};
  }
  const SliceFacts& slices = *signals.slices;
  const double filled_s = slices.bytes / policy.filled_per_s;
  const double of_step = std::min(filled_s / *signals.step_s, signals.step->compute);
  if (static_cast<double>(slices.of_tensor) < policy.many_slices || of_step < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(of_step * *context.train, policy);
  finding.severity = Severity::kWarning;  // estimated, not measured
  finding.speedup_bound.reset();
  finding.where = detail::place(place_of_loop(signals));
  finding.evidence = {
      context.say("in each step the model or the loss takes {} slices of a tensor of shape {}", slices.of_tensor,
                  slices.shape),
      context.say("for each slice the backward pass fills a gradient of the size of the whole tensor: {} in each step",
                  detail::format_noted_bytes(slices.bytes)),
      context.say("that takes about {} of a step of {}", format_seconds(filled_s), format_seconds(*signals.step_s)),
  };
  return finding;
}

}  // namespace

const Rule& slices_in_loop() {
  static const Rule kRule{
      .id = "slices-in-loop",
      .verdict = Verdict::kComputeBound,
      .title = "The backward pass fills a full-size gradient for each slice of a tensor",
      .topic = "slices in loops",
      .explanation =
          "For each slice scores[:, t], the backward pass fills a gradient of the size of scores, with zeros outside "
          "of the slice, and adds it to the others. A loop over t pays for the whole tensor in each iteration. "
          "unbind(1) before the loop gives the same slices, and stacks their gradients once. On two CPUs, the backward "
          "pass of a CRF loss over 60 time steps took 17 ms instead of 180 ms (64 x 60 x 30 x 30, torch 2.11).",
      .thresholds =
          "Training on CPUs, with at least many_slices (16) slices of a tensor in a step. The time is estimated: the "
          "bytes of all these gradients divided by filled_per_s (5 GB/s), at most the time of forward and backward "
          "pass, from warning_share (10 %) of a step. Because it is an estimate, the finding is always a warning and "
          "has no bound.",
      .needs = "step times, the graph of a backward pass",
      .proposes = "take the slices once before the loop, with unbind() or split(), and index the result",
      .evaluate = evaluate_slices_in_loop,
      .counts = Counts::kHostTime,
      .sentence = "Your backward pass spends about {share} of the run on gradients of tensor slices",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
