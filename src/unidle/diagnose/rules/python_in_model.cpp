#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

double part(std::int64_t of, std::int64_t all) { return static_cast<double>(of) / static_cast<double>(all); }

/// Whether Python itself takes much of the time there: more than the calls of large operations.
bool is_interpreted(const PythonPlace& place, const Policy& policy) {
  constexpr std::int64_t kFewest = 5;  // stack samples of which the state of the lock is known
  return place.known >= kFewest &&
         part(place.held, place.known) >= (place.in_loop ? policy.interpreted_loop : policy.interpreted_line);
}

/// Whether it is a loop over many operations that cost little more than their calls. Torch releases Python's lock in
/// each of them, so that such a loop holds the lock for only a small part of the time. A loop over layers is none:
/// nothing can compute them at once.
bool loops_over_small_operations(const PythonPlace& place, const Signals& signals, const Policy& policy) {
  return place.in_loop && part(place.direct + place.repeated, place.looks) >= policy.mostly && signals.operations &&
         signals.operations->per_pass >= policy.many_operations &&
         signals.operations->seconds_each <= policy.small_operation_s;
}

/// Whether the loop calls the same modules in each iteration, as over time steps. Much of that may need the step
/// before: what remains to be gained is unknown.
bool repeats_modules(const PythonPlace& place, const Policy& policy) {
  return part(place.direct, place.looks) < policy.mostly && !is_interpreted(place, policy);
}

Evaluation evaluate_python_in_model(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  Missing unknown{context.say("how long Python itself runs in the forward pass (stack samples)")};
  if (signals.python_places.empty()) {
    return unknown;
  }
  if (!signals.step || !context.train || !context.compute) {
    return Missing{context.no_steps};
  }
  if (context.on_gpu && !context.idle) {
    return Missing{context.say("how long the device idles")};
  }
  const PythonPlace* most = nullptr;
  for (const PythonPlace& place : signals.python_places) {
    const bool slow = is_interpreted(place, policy) || loops_over_small_operations(place, signals, policy);
    const bool counts = place.of_looks >= detail::kEnoughStackSamples && slow;
    if (counts && (most == nullptr || place.looks > most->looks)) {
      most = &place;
    }
  }
  if (most == nullptr) {
    const bool known = std::ranges::any_of(signals.python_places, [](const auto& place) { return place.known > 0; });
    return known ? Evaluation{Nothing{}} : unknown;
  }
  // The gradients of what a loop computes are computed one by one as well.
  const double share =
      std::min(part(most->looks, most->of_looks) * *context.compute, context.on_gpu ? *context.idle : 1.0);
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::place(most->where);
  if (most->in_loop && repeats_modules(*most, policy)) {
    finding.severity = Severity::kWarning;
    finding.speedup_bound.reset();
    finding.proposes =
        "take out of the loop what does not need the iteration before (nn.GRU computes all steps of an nn.GRUCell "
        "whose inputs are known), or use torch.compile";
  }
  const std::string of_forward = format_share(part(most->looks, most->of_looks));
  finding.evidence = {
      most->in_loop ? context.say("of {} stack samples of the forward pass, {} are in the loop at {}", most->of_looks,
                                  of_forward, most->place)
                    : context.say("of {} stack samples of the forward pass, {} are at {}", most->of_looks, of_forward,
                                  most->place),
  };
  if (loops_over_small_operations(*most, signals, policy)) {
    finding.evidence.push_back(context.say("a forward pass makes {:.0f} operations of torch, which take {} on average",
                                           signals.operations->per_pass,
                                           format_seconds(signals.operations->seconds_each)));
  }
  if (is_interpreted(*most, policy)) {
    finding.evidence.push_back(context.say("in {} of these Python itself was running, not an operation of torch",
                                           format_share(part(most->held, most->known))));
  }
  return finding;
}

}  // namespace

const Rule& python_in_model() {
  static const Rule kRule{
      .id = "python-in-model",
      .verdict = Verdict::kOverheadBound,
      .title = "Python code takes much of the time of the model",
      .topic = "Python code in the model",
      .explanation =
          "Each operation of torch costs some microseconds of Python and dispatch, forward and backward, however "
          "little it computes. A loop over samples, time steps or single numbers in forward(), or in the function of a "
          "loss, pays that for each of them, on one thread, while the device or the other CPUs have nothing to do. "
          "Stack "
          "samples show the loop, and how often Python held its lock, which operations of torch release.",
      .thresholds =
          "A loop in the forward pass that is no stack of layers, and one of these: Python holds its lock in "
          "interpreted_loop (20 %) of the loop's stack samples; or the loop calls no module, or the same ones "
          "in each iteration, and a forward pass makes at least many_operations (300), which take at most "
          "small_operation_s (50 us) on average. A loop that calls modules may need each iteration's result in the "
          "next: a warning without a bound. Or a line outside "
          "of loops, with Python's lock held in interpreted_line (80 %) of its samples. Of the lock tell only samples "
          "in which its state is known, at least 5 there. The share is that part of the forward pass, times the share "
          "of forward and backward pass, from warning_share (10 %) of the wall time; critical from critical_share "
          "(30 %). On a GPU at most the time that it idles.",
      .needs = "step times, stack samples of the forward pass with the state of Python's lock",
      .proposes =
          "compute all iterations at once with operations on whole tensors, or use torch.compile where each needs the "
          "one before",
      .evaluate = evaluate_python_in_model,
      .counts = Counts::kHostTime,
      .sentence = "Your model spends {share} of the run in Python code at {where}",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
