#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/printable.h"
#include "unidle/base/units.h"
#include "unidle/trace/document.h"

namespace unidle::trace {

namespace {

constexpr int kNumbers = 34;  // columns before a name

double share_of(double part, double whole) { return whole > 0 ? part / whole : 0; }

void add_head(const TraceSummary& trace, std::string& text) {
  text +=
      fmt::format("{}: {} events over {}\n", printable_line(trace.file), trace.events, format_seconds(trace.span_s));
  if (trace.step_s) {
    text +=
        fmt::format("  steps      {}, {} each ({} to {})\n", trace.step_s.count, format_seconds(trace.step_s.mean()),
                    format_seconds(trace.step_s.least), format_seconds(trace.step_s.most));
  }
  if (trace.parts) {
    const StepParts& parts = *trace.parts;
    text += fmt::format("  of a step  input {}, copies {}, waiting for the device {}, optimizer {}, the rest {}\n",
                        format_share(parts.input), format_share(parts.transfer), format_share(parts.sync),
                        format_share(parts.optimizer), format_share(parts.rest));
  }
}

void add_device(const TraceSummary& trace, std::string& text) {
  if (trace.devices.empty()) {
    text += "  device     nothing ran on one in this window\n";
    return;
  }
  for (const DeviceUse& device : trace.devices) {
    text += fmt::format(
        "  device {:<3} busy {} of the window ({} of {}){}\n", device.id,
        format_share(share_of(device.busy_s, trace.window_s)), format_seconds(device.busy_s),
        format_seconds(trace.window_s),
        trace.device_name.empty() || trace.devices.size() > 1 ? "" : ", " + printable_line(trace.device_name));
  }
  if (trace.kernel_count > 0) {
    text += fmt::format("  kernels    {}, {} each on average; {} of their time on matrix units\n", trace.kernel_count,
                        format_seconds(trace.kernel_s / static_cast<double>(trace.kernel_count)),
                        format_share(*trace.matrix_share()));
  }
  if (trace.launches > 0) {
    text += fmt::format("  launches   {}, {} of the host's time each\n", trace.launches,
                        format_seconds(trace.launch_s / static_cast<double>(trace.launches)));
  }
}

/// What kept the device from computing, as shares of the window; causes without a share are left out.
void add_lost(const TraceSummary& trace, std::string& text) {
  if (!trace.idle || trace.window_s <= 0) {
    return;
  }
  const auto share = [&](double seconds) { return format_share(share_of(seconds, trace.window_s)); };
  if (trace.communication_s > 0) {
    text += fmt::format("  exchange   {} of the window, {} not overlapped by other kernels\n",
                        share(trace.communication_s), share(trace.communication_alone_s));
  }
  if (trace.copying_s > 0) {
    text += fmt::format("  copies     {} of the window, {} not overlapped by kernels\n", share(trace.copying_s),
                        share(trace.copying_alone_s));
  }
  std::string parts;
  for (const IdleCause& cause : causes_of(*trace.idle)) {
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", cause.name, share(cause.seconds));
  }
  text +=
      fmt::format("  idle       {} of the window{}{}\n", share(trace.idle->idle_s), parts.empty() ? "" : ": ", parts);
}

void add_gap_rows(const TraceSummary& trace, int width, std::string& text) {
  if (trace.gaps.empty()) {
    return;
  }
  text += "\nlongest times without work on the device, and what the host did\n";
  for (const DeviceGap& gap : trace.gaps) {
    text += fmt::format("  {:>10} at {:>10}  {}\n", format_seconds(gap.seconds), format_seconds(gap.begin_s),
                        gap.host.empty() ? "nothing that was seen" : shortened(gap.host, width - 28));
  }
}

void add_row(std::string& text, double seconds, double whole, std::int64_t count, std::string_view name) {
  text += fmt::format("  {:>10} {:>7} {:>9}x  {}\n", format_seconds(seconds),
                      whole > 0 ? format_share(share_of(seconds, whole)) : "", count, name);
}

void add_tables(const TraceSummary& trace, int width, std::string& text) {
  if (!trace.kernels.empty()) {
    text += "\nkernels by time (* matrix units)\n";
  }
  for (const KernelUse& kernel : trace.kernels) {
    add_row(text, kernel.total_s, trace.kernel_s, kernel.count,
            (kernel.matrix_units ? "* " : "  ") + shortened(kernel.name, width - kNumbers - 2));
  }
  if (!trace.copies.empty()) {
    text += "\ncopies and fills by time\n";
  }
  for (const CopyUse& copy : trace.copies) {
    const bool known = copy.bytes > 0;
    add_row(text, copy.total_s, 0, copy.count,
            printable_line(copy.kind) +
                (known ? ", " + format_bytes(static_cast<std::uint64_t>(copy.bytes)) : std::string()) +
                (known && copy.total_s > 0 ? ", " + format_number(copy.bytes / copy.total_s * 1e-9) + " GB/s" : ""));
  }
  if (!trace.operators.empty()) {
    text += "\noperators by the host's time in them\n";
  }
  for (const OperatorUse& use : trace.operators) {
    add_row(text, use.self_s, trace.step_s.sum > 0 ? trace.step_s.sum : trace.span_s, use.count,
            shortened(use.name, width - kNumbers));
  }
}

}  // namespace

std::string shortened(const std::string& given, int columns) {
  std::string name = printable_line(given);
  for (const std::string_view front : {"void ", "at::native::", "(anonymous namespace)::"}) {
    name.erase(0, name.starts_with(front) ? front.size() : 0);
  }
  const auto room = static_cast<std::size_t>(std::max(columns, 20));
  return name.size() <= room ? name : printable_line(name.substr(0, room - 3)) + "...";
}

std::string to_text(const TraceSummary& trace, int width) {
  std::string text;
  add_head(trace, text);
  add_device(trace, text);
  add_lost(trace, text);
  add_gap_rows(trace, width, text);
  add_tables(trace, width, text);
  return text;
}

}  // namespace unidle::trace
