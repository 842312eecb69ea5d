#include <utility>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/copies.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_transfer_blocking(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (auto missing = detail::missing_for_copies(context)) {
    return Missing{std::move(*missing)};
  }
  const TransferFacts& facts = *signals.transfer;
  const double pinned = detail::pinned_part(facts);
  if (!facts.blocking || !facts.nonblocking) {
    return Missing{"whether copies block the host"};
  }
  const auto copies = static_cast<double>(*facts.blocking + *facts.nonblocking);
  const double blocking = copies > 0 ? static_cast<double>(*facts.blocking) / copies : 0;
  const double part = pinned * blocking;
  const double share = detail::beyond_copying(context, policy, *context.transfer * part, part);
  if (pinned < policy.mostly || blocking < policy.mostly || share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::where_set(context, "transfer.non_blocking");
  if (!finding.where) {
    finding.where = detail::place(facts.where);
  }
  finding.evidence = {
      context.say("{} of the bytes come from pinned memory, and {} of the copies block the host all the same",
                  format_share(pinned), format_share(blocking)),
      context.say("copies take {} of each step ({} of the wall time)", format_share(signals.step->transfer),
                  format_share(*context.transfer)),
      detail::copying_in_words(context, policy),
  };
  finding.fixes.push_back(
      detail::make_fix(context, "transfer.non_blocking", true,
                       ".to(device, non_blocking=True): the host does not wait for the copy; only a copy on a side "
                       "stream overlaps with computation"));
  return finding;
}

}  // namespace

const Rule& transfer_blocking() {
  static const Rule kRule{
      .id = "transfer-blocking",
      .verdict = Verdict::kTransferBound,
      .title = "Copies block the host although the memory is pinned",
      .topic = "copy overlap",
      .explanation =
          "A copy from pinned memory can run while the host queues the next work, if it is asked to: .to(device, "
          "non_blocking=True). Otherwise the host waits for every copy, and the device waits for the host afterwards. "
          "What the copy itself takes in the stream that computes is not counted here.",
      .thresholds =
          "At least mostly (50 %) of the bytes pinned and of the copies blocking; their time, less what their bytes "
          "take on the link where its rate is known, from warning_share (10 %) of the wall time.",
      .needs = "the memory that copies come from, whether they block, step times with their copies",
      .proposes = "transfer.non_blocking",
      .evaluate = evaluate_transfer_blocking,
      .counts = Counts::kHostTime,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
