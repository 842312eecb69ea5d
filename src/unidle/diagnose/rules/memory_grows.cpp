#include <algorithm>
#include <string>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/development.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// What makes it grow: a container whose elements are a good part of the growth, or hold tensors with their graph,
/// whose bytes nobody counts.
const GrowingFacts* grower(const Signals& signals) {
  constexpr double kGoodPart = 0.1;
  const auto found = std::ranges::find_if(signals.growing, [&](const GrowingFacts& one) {
    return one.graph || one.bytes_per_step >= kGoodPart * signals.development->memory_per_step;
  });
  return found == signals.growing.end() ? nullptr : &*found;
}

Evaluation evaluate_memory_grows(const Context& context, const Policy& policy) {
  const auto& development = context.signals.development;
  if (!development || development->memory_bytes.empty()) {
    return Missing{context.say("how the memory of the run develops")};
  }
  const std::vector<double>& memory = development->memory_bytes;
  if (!detail::grows_steadily(memory) || memory.back() - memory.front() < policy.growing_memory) {
    return Nothing{};
  }
  const GrowingFacts* one = grower(context.signals);
  if (one == nullptr && context.signals.batch_shapes.value_or(0) > policy.fixed_shapes) {
    return Nothing{};  // batches that become larger by a plan take more memory
  }
  Finding finding;
  finding.severity = Severity::kInfo;
  finding.evidence.push_back(
      context.say("the run uses {} at the beginning of the training and {} at its end: {} more with each step",
                  detail::format_noted_bytes(memory.front()), detail::format_noted_bytes(memory.back()),
                  detail::format_noted_bytes(development->memory_per_step)));
  if (one != nullptr) {
    finding.where = detail::place(one->where);
    finding.evidence.push_back(
        one->graph
            ? context.say("{} grows by {:.3g} with each step, and holds tensors with the graph that computed them",
                          one->text(), one->per_step)
            : context.say("{} grows by {:.3g} with each step, which takes {}", one->text(), one->per_step,
                          detail::format_noted_bytes(one->bytes_per_step)));
  }
  if (development->full_in_s) {
    finding.evidence.push_back(
        context.say("at that rate its memory is full {} later", format_seconds(*development->full_in_s)));
    if (*development->full_in_s < policy.memory_full_within_s) {
      finding.severity = Severity::kCritical;
    }
  }
  return finding;
}

}  // namespace

const Rule& memory_grows() {
  static const Rule kRule{
      .id = "memory-grows",
      .verdict = Verdict::kUnknown,
      .title = "Memory grows with every step",
      .topic = "growth of memory",
      .explanation =
          "Results that are kept in a list, or summed as tensors (total += loss), keep their graph and all "
          "activations in it. The run is not slower for it, until its memory is full and it is killed.",
      .thresholds =
          "The memory of the run grows over the whole training and not in one jump, by growing_memory "
          "(256 MB) in all: a hint; "
          "critical where it would be full within memory_full_within_s (an hour). Nothing where batches have more than "
          "fixed_shapes (4) shapes, unless it is known what grows.",
      .needs =
          "readings of the run's memory while training, and its limit; names a list, dict or set of the program that "
          "grows "
          "with the steps",
      .proposes =
          "keep numbers instead of tensors with their graph (loss.item(), loss.detach()), and bound lists and caches",
      .evaluate = evaluate_memory_grows,
      .counts = Counts::kOther,
      .sentence = "Your run's memory grows with every step and will soon be full at this rate",
      .about_memory = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
