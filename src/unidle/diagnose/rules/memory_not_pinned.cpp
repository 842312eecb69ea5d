#include <utility>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/copies.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_memory_not_pinned(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (auto missing = detail::missing_for_copies(context)) {
    return Missing{std::move(*missing)};
  }
  const TransferFacts& facts = *signals.transfer;
  const double pinned = detail::pinned_part(facts);
  const double share = detail::beyond_copying(context, policy, *context.transfer * (1 - pinned), 1 - pinned);
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::where_set(context, "loader.pin_memory");
  if (!finding.where) {
    finding.where = detail::place(facts.where);
  }
  finding.evidence = {
      context.say("{} of the copied bytes came from pageable memory", format_share(1 - pinned)),
      context.say("copies take {} of each step ({} of the wall time)", format_share(signals.step->transfer),
                  format_share(*context.transfer)),
      detail::copying_in_words(context, policy),
  };
  finding.fixes.push_back(
      detail::make_fix(context, "loader.pin_memory", true, "let the loader put batches into pinned memory"));
  finding.fixes.push_back(detail::make_fix(context, "transfer.non_blocking", true,
                                           "then the host does not wait for copies; only copies on a side stream "
                                           "overlap with computation (unidle.data.Loader with device= has one)"));
  return finding;
}

}  // namespace

const Rule& memory_not_pinned() {
  static const Rule kRule{
      .id = "memory-not-pinned",
      .verdict = Verdict::kTransferBound,
      .title = "Copies to the device come from pageable memory",
      .topic = "pinned memory",
      .explanation =
          "The driver first copies pageable memory into a pinned buffer of its own and makes the host wait for it. "
          "Pinned batches are copied directly, which is faster, and the host need not wait. The copy itself still "
          "takes its time in the stream that computes, unless it is queued in another one.",
      .thresholds =
          "The pageable part of the time for copies, less what their bytes take on the link where its rate is known, "
          "from warning_share (10 %) of the wall time, critical from critical_share (30 %).",
      .needs = "the memory that copies come from, step times with their copies",
      .proposes = "loader.pin_memory, transfer.non_blocking",
      .evaluate = evaluate_memory_not_pinned,
      .counts = Counts::kHostTime,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
