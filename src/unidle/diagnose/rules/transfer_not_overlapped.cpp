#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/copies.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/timeline_findings.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

bool mostly_blocking(const TransferFacts& facts, const Policy& policy) {
  const auto blocking = static_cast<double>(facts.blocking.value_or(0));
  const auto all = blocking + static_cast<double>(facts.nonblocking.value_or(0));
  return all > 0 && blocking / all >= policy.mostly;
}

std::optional<std::string> missing_signal(const Context& context, const Policy& policy) {
  if (auto missing = detail::missing_for_copies(context)) {
    return missing;
  }
  const Signals& signals = context.signals;
  if (!signals.transfer->in_line_bytes) {
    return "which stream copies to the device run in";
  }
  if (!detail::link_rate(signals, policy)) {
    return "the rate of the device's link";
  }
  if (!signals.device_kept_up && !mostly_blocking(*signals.transfer, policy)) {
    return "whether the device keeps up with the host";
  }
  return std::nullopt;
}

knobs::Change side_stream(const Context& context) {
  return detail::code_fix(context, "transfer.non_blocking",
                          "copy the next batch on a side stream while this one computes (torch.cuda.Stream, pinned "
                          "memory, non_blocking=True, wait_stream before its use), or take batches from "
                          "unidle.data.Loader with device=\"cuda\", which does so");
}

/// The trace itself shows what copies cost, even with few steps.
Evaluation copies_by_timeline(const Context& context, const DeviceTimeline& timeline, const Policy& policy) {
  const double share = timeline.copies_alone + timeline.copy_calls;
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  // Copies hide behind kernels, and where few run they win little.
  const double kernels = std::max(0.0, 1 - timeline.idle - timeline.copies_alone);
  finding.speedup_bound = amdahl(std::min(timeline.copies_alone, kernels) + timeline.copy_calls);
  finding.evidence.push_back(
      context.say("in the profiled steps copies that no kernel overlaps take {} of the time, and for {} the device "
                  "idles while the host is in copy calls",
                  format_share(timeline.copies_alone), format_share(timeline.copy_calls)));
  if (context.signals.transfer && context.signals.transfer->pageable_bytes > 0) {
    finding.evidence.push_back(context.say("{} of the bytes copied to the device come from pageable memory",
                                           format_share(1 - detail::pinned_part(*context.signals.transfer))));
  }
  finding.fixes.push_back(side_stream(context));
  return finding;
}

Evaluation evaluate_transfer_not_overlapped(const Context& context, const Policy& policy) {
  if (const DeviceTimeline* timeline = detail::only_timeline(context)) {
    return copies_by_timeline(context, *timeline, policy);
  }
  if (auto missing = missing_signal(context, policy)) {
    return Missing{std::move(*missing)};
  }
  const Signals& signals = context.signals;
  const TransferFacts& facts = *signals.transfer;
  const bool blocking = mostly_blocking(facts, policy);
  if (!context.behind && !blocking) {
    return Nothing{};  // the device waits for the host anyway
  }
  const double copying = detail::compute_stream_copy_share(context, policy).value_or(0);
  const double share = std::min(copying, std::max(0.0, *context.train - copying));  // copies and compute overlap
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::place(facts.where);
  const double each = *facts.in_line_bytes / static_cast<double>(*signals.steps);
  finding.evidence = {
      context.say("{} a step are copied in the stream that computes, at {}/s at most: {} of the wall time or more",
                  detail::format_noted_bytes(each), detail::format_noted_bytes(*detail::link_rate(signals, policy)),
                  format_share(copying)),
      "work of one stream is done one after the other: while it copies, the device computes nothing",
  };
  if (context.behind) {
    finding.evidence.push_back(
        context.say("in {} of the steps the device still had work queued when the host launched more: it does not wait "
                    "for the host",
                    format_share(1 - *signals.device_kept_up)));
  }
  finding.fixes.push_back(side_stream(context));
  return finding;
}

}  // namespace

const Rule& transfer_not_overlapped() {
  static const Rule kRule{
      .id = "transfer-not-overlapped",
      .verdict = Verdict::kTransferBound,
      .title = "Copies to the device run in the stream that computes",
      .topic = "copies beside compute",
      .explanation =
          "A device copies and computes at the same time, but work of one stream is done one after the other. A batch "
          "that is copied in the model's stream, blocking or not, starts after the step before and delays its own. On "
          "a side stream the copy overlaps with the step before.",
      .thresholds =
          "The bytes of such copies over the link's rate (what a profiler's window measured, else link_payload (90 %) "
          "of what its lanes and generation carry), no more than the time in which the multiprocessors idled, where "
          "that was sampled, and no more than what is left to hide it behind: from warning_share (10 %) of the wall "
          "time, critical from critical_share (30 %). Only where the device is behind the host in half of the steps "
          "(mostly, 50 %), or the copies block.",
      .needs =
          "bytes copied in the stream that computes, the link's rate, whether the device keeps up with the host, step "
          "times",
      .proposes = "a side stream for copies, or unidle.data.Loader with device=",
      .evaluate = evaluate_transfer_not_overlapped,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} copies instead of computing for {share} of the run",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
