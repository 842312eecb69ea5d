#include "unidle/diagnose/detail/trace_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/logs/job_logs.h"

namespace unidle::diagnose::detail {

namespace {

using trace::TraceSummary;

constexpr std::size_t kKernelsTold = 3;
constexpr double kLeastTold = 0.01;  // of the window
constexpr std::size_t kLongestName = 60;

std::string short_name(const std::string& name) {
  return fmt::format("{:.{}}{}", name, kLongestName, name.size() > kLongestName ? "..." : "");
}

void add_transfer(const TraceSummary& trace, Signals& signals) {
  TransferFacts facts;
  for (const trace::CopyUse& copy : trace.copies) {
    facts.pageable_bytes += copy.kind == "HtoD (Pageable -> Device)" ? copy.bytes : 0;
    if (copy.kind == "HtoD (Pinned -> Device)") {
      facts.pinned_bytes += copy.bytes;
      const double rate = copy.total_s > 0 ? copy.bytes / copy.total_s : 0;
      signals.pinned_rate = rate > 0 ? std::optional(rate) : std::nullopt;
    }
  }
  if (!signals.transfer && facts.pageable_bytes + facts.pinned_bytes > 0) {
    signals.transfer = facts;
  }
}

}  // namespace

std::string describe(const TraceSummary& trace, const trace::DeviceUse& device, Language language) {
  std::string text = translate(language, "profiler trace, device {}: kernels and copies cover {} of {}", device.id,
                               format_seconds(device.busy_s), format_seconds(trace.window_s));
  if (!trace.gaps.empty()) {
    const auto& gap = trace.gaps.front();
    text += gap.host.empty() ? translate(language, "; longest gap {}", format_seconds(gap.seconds))
                             : translate(language, "; longest gap {} while the host was in {}",
                                         format_seconds(gap.seconds), short_name(gap.host));
  }
  if (trace.idle && trace.window_s > 0) {
    std::string parts;
    for (const trace::IdleCause& cause : trace::causes_of(*trace.idle)) {
      if (cause.seconds >= kLeastTold * trace.window_s) {
        parts += fmt::format("{} {} {}", parts.empty() ? "" : ",", translate(language, cause.name),
                             format_share(cause.seconds / trace.window_s));
      }
    }
    text += parts.empty() ? "" : translate(language, "; idle by what the host did:{}", parts);
  }
  if (const auto kernels = static_cast<double>(trace.kernel_count); kernels > 0) {
    text += translate(language, "; {} kernels of {} on average, most time in", grouped(kernels),
                      format_seconds(trace.kernel_s / kernels));
    for (std::size_t i = 0; i < std::min(kKernelsTold, trace.kernels.size()); ++i) {
      text += fmt::format("{} {} ({})", i == 0 ? "" : ",", short_name(trace.kernels[i].name),
                          format_share(trace.kernels[i].total_s / std::max(trace.kernel_s, 1e-12)));
    }
  }
  return text;
}

std::optional<DeviceTimeline> timeline_of(const TraceSummary& trace, double train) {
  if (!trace.idle || trace.window_s <= 0 || (trace.kernel_count == 0 && trace.copying_s <= 0)) {
    return std::nullopt;
  }
  const trace::IdleTime& idle = *trace.idle;
  const auto share = [&](double seconds) { return seconds / trace.window_s * train; };
  DeviceTimeline timeline;
  timeline.communication = share(trace.communication_s);
  timeline.communication_alone = share(trace.communication_alone_s);
  timeline.copies_alone = share(trace.copying_alone_s);
  timeline.idle = share(idle.idle_s);
  timeline.input = share(idle.input_s);
  timeline.compile = share(idle.compile_s);
  timeline.allocator = share(idle.allocator_s);
  timeline.sync = share(idle.sync_s);
  timeline.copy_calls = share(idle.copy_s);
  timeline.launch = share(idle.launch_s);
  timeline.host = share(idle.host_s);
  timeline.unnamed = share(idle.unnamed_s);
  timeline.profiler = share(idle.profiler_s);
  timeline.queued = share(idle.queued_s);
  timeline.unseen = share(idle.unseen_s);
  timeline.kernels = trace.kernel_count;
  if (trace.kernel_count > 0) {
    timeline.launch_every_s = trace.window_s / static_cast<double>(trace.kernel_count);
  }
  timeline.python_frames = trace.python_frames;
  if (!trace.gaps.empty()) {
    timeline.host_in = short_name(trace.gaps.front().host);
    timeline.longest_gap_s = trace.gaps.front().seconds;
  }
  return timeline;
}

void add_flops(const TraceSummary& trace, Signals& signals) {
  signals.flops_per_step = trace.flops_per_step();
  signals.peak_s_per_step = trace.seconds_at_peak();
}

void add_kernel_facts(const TraceSummary& trace, Signals& signals) {
  if (const auto share = trace.matrix_share()) {
    KernelFacts facts{trace.kernel_s / static_cast<double>(trace.kernel_count), std::nullopt, *share};
    if (trace.launches > 0) {
      facts.launch_s = trace.launch_s / static_cast<double>(trace.launches);
    }
    signals.kernels = facts;
  }
  add_transfer(trace, signals);
}

}  // namespace unidle::diagnose::detail
