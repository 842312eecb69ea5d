#include "unidle/diagnose/detail/copies.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "unidle/base/units.h"

namespace unidle::diagnose::detail {

namespace {

/// Share of the wall time that copying `bytes` takes, over all steps.
std::optional<double> copying(const Context& context, const Policy& policy, double bytes) {
  const Signals& signals = context.signals;
  const auto rate = link_rate(signals, policy);
  if (!rate || !context.train || signals.steps.value_or(0) < 1 || signals.step_s.value_or(0) <= 0) {
    return std::nullopt;
  }
  const double each_s = bytes / static_cast<double>(*signals.steps) / *rate;
  return *context.train * std::min(1.0, each_s / *signals.step_s);
}

/// Bytes copied in the compute stream; all bytes when streams were not observed.
double bytes_in_line(const TransferFacts& facts) {
  return facts.in_line_bytes.value_or(facts.pinned_bytes + facts.pageable_bytes);
}

}  // namespace

std::optional<std::string> missing_for_copies(const Context& context) {
  const auto& transfer = context.signals.transfer;
  if (context.on_cpu) {
    return "copies to the device (the device is a CPU)";
  }
  if (!transfer || transfer->pinned_bytes + transfer->pageable_bytes <= 0) {
    return "the memory that copies to the device come from";
  }
  return context.transfer ? std::nullopt : std::optional(context.no_steps);
}

double pinned_part(const TransferFacts& facts) {
  return facts.pinned_bytes / (facts.pinned_bytes + facts.pageable_bytes);
}

std::optional<double> raw_link_rate(double lanes, double generation) {
  // PCI Express base specification: transfers per second per lane, less the line code (8b/10b, then 128b/130b, FLITs).
  constexpr std::array kLaneBytes_s = {0.25e9, 0.5e9, 0.9846e9, 1.969e9, 3.938e9, 7.563e9};
  const auto index = std::llround(generation) - 1;
  if (lanes <= 0 || index < 0 || index >= std::ssize(kLaneBytes_s)) {
    return std::nullopt;
  }
  return lanes * kLaneBytes_s.at(static_cast<std::size_t>(index));
}

std::optional<double> link_rate(const Signals& signals, const Policy& policy) {
  if (signals.pinned_rate) {
    return signals.pinned_rate;
  }
  const GpuFacts& gpu = signals.gpu;
  const auto told = [&](const std::optional<double>& now, const std::optional<double>& most) {
    return now && most && signals.virtual_machine ? std::optional(std::max(*now, *most)) : now ? now : most;
  };
  const auto lanes = told(gpu.link_width, gpu.link_width_max);
  const auto generation = told(gpu.link_generation, gpu.link_generation_max);
  const auto raw = lanes && generation ? raw_link_rate(*lanes, *generation) : std::nullopt;
  return raw ? std::optional(std::max(*raw * policy.link_payload, gpu.link_received.value_or(0))) : std::nullopt;
}

std::optional<double> compute_stream_copy_share(const Context& context, const Policy& policy) {
  const auto& transfer = context.signals.transfer;
  if (!context.on_gpu || !transfer || !transfer->in_line_bytes) {
    return std::nullopt;
  }
  auto share = copying(context, policy, *transfer->in_line_bytes);
  if (share && context.signals.sm_activity) {
    // Kernels ran in the rest. NVML's utilisation does not show this: on an H200 it counted such copies as well.
    share = std::min(*share, (1 - *context.signals.sm_activity) * *context.train);
  }
  return share;
}

double beyond_copying(const Context& context, const Policy& policy, double share, double part) {
  const double itself = copying(context, policy, bytes_in_line(*context.signals.transfer)).value_or(0);
  return std::max(0.0, share - part * itself);
}

std::string copying_in_words(const Context& context, const Policy& policy) {
  const auto rate = link_rate(context.signals, policy);
  const auto itself = copying(context, policy, bytes_in_line(*context.signals.transfer));
  if (!rate || !itself) {
    return context.say("how much of that is the copy itself, which stays, is not known: the link's rate was not read");
  }
  return context.say(
      "the copies themselves take at least {} of the wall time (at {}/s); that stays, unless they run on a side stream",
      format_share(*itself), format_noted_bytes(*rate));
}

}  // namespace unidle::diagnose::detail
