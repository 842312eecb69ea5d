#include <algorithm>
#include <cmath>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/copies.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// Bandwidth is proportional to lanes and doubles with each generation.
std::optional<double> part_of_bandwidth(const GpuFacts& gpu) {
  if (!gpu.link_width || !gpu.link_width_max || *gpu.link_width_max <= 0) {
    return std::nullopt;
  }
  double part = *gpu.link_width / *gpu.link_width_max;
  if (gpu.link_generation && gpu.link_generation_max) {
    part *= std::exp2(*gpu.link_generation - *gpu.link_generation_max);
  }
  return std::clamp(part, 0.0, 1.0);
}

/// True when more came over the link than its readings allow: the readings are wrong.
bool was_faster(const GpuFacts& gpu) {
  const auto raw =
      gpu.link_generation ? detail::raw_link_rate(*gpu.link_width, *gpu.link_generation) : std::optional<double>();
  return raw && gpu.link_received.value_or(0) > *raw;
}

Evaluation evaluate_link_degraded(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (context.on_cpu) {
    return Missing{"the device's link (the device is a CPU)"};
  }
  const auto part = part_of_bandwidth(signals.gpu);
  if (!part) {
    return Missing{"the width and generation of the device's link under load"};
  }
  if (*part >= 1 || was_faster(signals.gpu)) {
    return Nothing{};
  }
  Finding finding;
  if (context.transfer && !signals.virtual_machine) {
    finding = detail::of_share(*context.transfer * (1 - *part), policy);
  }
  finding.evidence.push_back(
      context.say("under load the link runs with {} of {} lanes{}: {} of its bandwidth",
                  format_number(*signals.gpu.link_width), format_number(*signals.gpu.link_width_max),
                  signals.gpu.link_generation && signals.gpu.link_generation_max
                      ? context.say(" at generation {} of {}", format_number(*signals.gpu.link_generation),
                                    format_number(*signals.gpu.link_generation_max))
                      : std::string(),
                  format_share(*part)));
  if (context.transfer) {
    finding.evidence.push_back(context.say("copies take {} of each step ({} of the wall time)",
                                           format_share(signals.step->transfer), format_share(*context.transfer)));
  }
  if (signals.virtual_machine) {
    finding.evidence.emplace_back(
        "this is a virtual machine: the reading may be that of a virtual bridge; unidle check --speed measures the "
        "rate of copies");
  }
  return finding;
}

}  // namespace

const Rule& link_degraded() {
  static const Rule kRule{
      .id = "link-degraded",
      .verdict = Verdict::kTransferBound,
      .title = "The link to the device runs below its width or generation",
      .topic = "device link",
      .explanation =
          "A card in a slot with fewer lanes, a riser or a worn contact trains its PCI Express link down to fewer "
          "lanes or an older generation, and copies take as much longer. Links save power when idle, so only what was "
          "seen under load counts.",
      .thresholds =
          "Any width or generation below the most that card and slot offer; severity by the part of the copies' time "
          "that the full link would save. In a virtual machine a hint without a share, and nothing where more came "
          "over the link than it could carry as it is read.",
      .needs = "the link's width and generation now and at most, while training",
      .proposes = "try another slot, cable or riser, and look at the BIOS settings of the slot",
      .evaluate = evaluate_link_degraded,
      .counts = Counts::kHostTime,
      .sentence = "Your {device} has a link that runs below its width or generation",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
