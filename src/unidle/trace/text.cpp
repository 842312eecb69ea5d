#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "unidle/base/printable.h"
#include "unidle/base/units.h"
#include "unidle/language/translator.h"
#include "unidle/trace/document.h"

namespace unidle::trace {

namespace {

constexpr int kNumbers = 34;  // columns before a name

double share_of(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// Composes the text of one trace.
class Page {
 public:
  Page(const TraceSummary& trace, int width, Language language) : trace_(trace), width_(width), translator_{language} {}

  std::string text() {
    add_head();
    add_arithmetic();
    add_device();
    add_lost();
    add_gaps();
    add_tables();
    return std::move(text_);
  }

 private:
  void line(std::string_view label, const std::string& value) { text_ += fmt::format("  {:<11}{}\n", label, value); }
  void head(const std::string& title) { text_ += "\n" + title + "\n"; }
  void row(double seconds, double whole, std::int64_t count, std::string_view name) {
    text_ += fmt::format("  {:>10} {:>7} {:>9}x  {}\n", format_seconds(seconds),
                         whole > 0 ? format_share(share_of(seconds, whole)) : "", count, name);
  }
  std::string of_window(double seconds) const { return format_share(share_of(seconds, trace_.window_s)); }

  void add_head();
  void add_arithmetic();
  void add_device();
  void add_lost();
  void add_gaps();
  void add_tables();

  const TraceSummary& trace_;
  int width_;
  Translator translator_;
  std::string text_;
};

void Page::add_head() {
  text_ += translator_.say("{}: {} events over {}", printable_line(trace_.file), trace_.events,
                           format_seconds(trace_.span_s)) +
           "\n";
  if (trace_.step_s) {
    line(translator_.word("steps"),
         translator_.say("{}, {} each ({} to {})", trace_.step_s.count, format_seconds(trace_.step_s.mean()),
                         format_seconds(trace_.step_s.least), format_seconds(trace_.step_s.most)));
  }
  if (trace_.parts) {
    const StepParts& parts = *trace_.parts;
    line(translator_.word("of a step"),
         translator_.say("input {}, copies {}, waiting for the device {}, optimizer {}, the rest {}",
                         format_share(parts.input), format_share(parts.transfer), format_share(parts.sync),
                         format_share(parts.optimizer), format_share(parts.rest)));
  }
}

/// The operations of a step. In a window of the profiler steps are slower, so the utilisation is a lower limit.
void Page::add_arithmetic() {
  const auto flops = trace_.flops_per_step();
  const auto step_s = trace_.seconds_per_step();
  if (!flops || !step_s) {
    return;
  }
  const std::string per_step = format_flops(*flops);
  const std::string per_s = format_flops(*flops / *step_s) + "/s";
  const auto [type, mostly] = trace_.main_type();
  std::string words = type.empty() ? translator_.say("{} per step, {}", per_step, per_s)
                      : mostly     ? translator_.say("{} per step, {}, mostly in {}", per_step, per_s, type)
                                   : translator_.say("{} per step, {} in {}", per_step, per_s, type);
  if (const auto peak_s = trace_.seconds_at_peak()) {
    words += translator_.say(", {} of the data-sheet peak (MFU)", format_share(*peak_s / *step_s));
  }
  line(translator_.word("compute"), words);
}

void Page::add_device() {
  if (trace_.devices.empty()) {
    line(translator_.word("device"),
         trace_.unread_device.empty()
             ? translator_.say("nothing ran on one in this window")
             : translator_.say("the work of \"{}\" has a form that is not read", trace_.unread_device));
    return;
  }
  for (const DeviceUse& device : trace_.devices) {
    const bool named = !trace_.device_name.empty() && trace_.devices.size() == 1;
    line(translator_.say("device {}", device.id),
         translator_.say("busy {} of the window ({} of {})", of_window(device.busy_s), format_seconds(device.busy_s),
                         format_seconds(trace_.window_s)) +
             (named ? ", " + printable_line(trace_.device_name) : ""));
  }
  if (trace_.kernel_count > 0) {
    line(translator_.word("kernels"),
         translator_.say("{}, {} each on average; {} of their time on matrix units", trace_.kernel_count,
                         format_seconds(trace_.kernel_s / static_cast<double>(trace_.kernel_count)),
                         format_share(*trace_.matrix_share())));
  }
  if (trace_.launches > 0) {
    line(translator_.word("launches"),
         translator_.say("{}, {} of the host's time each", trace_.launches,
                         format_seconds(trace_.launch_s / static_cast<double>(trace_.launches))));
  }
}

/// What kept the device from computing, as shares of the window; causes without a share are left out.
void Page::add_lost() {
  if (!trace_.idle || trace_.window_s <= 0) {
    return;
  }
  if (trace_.communication_s > 0) {
    line(translator_.word("exchange"),
         translator_.say("{} of the window, {} not overlapped by other kernels", of_window(trace_.communication_s),
                         of_window(trace_.communication_alone_s)));
  }
  if (trace_.copying_s > 0) {
    line(translator_.word("copies"), translator_.say("{} of the window, {} not overlapped by kernels",
                                                     of_window(trace_.copying_s), of_window(trace_.copying_alone_s)));
  }
  std::vector<std::string> parts;
  for (const IdleCause& cause : causes_of(*trace_.idle)) {
    parts.push_back(translator_.word(cause.name) + " " + of_window(cause.seconds));
  }
  const std::string share = of_window(trace_.idle->idle_s);
  line(translator_.word("idle"), parts.empty()
                                     ? translator_.say("{} of the window", share)
                                     : translator_.say("{} of the window: {}", share,
                                                       fmt::format("{}", fmt::join(parts, translator_.word(", ")))));
}

void Page::add_gaps() {
  if (trace_.gaps.empty()) {
    return;
  }
  head(translator_.say("longest times without work on the device, and what the host did"));
  for (const DeviceGap& gap : trace_.gaps) {
    text_ += "  " +
             translator_.say(
                 "{:>10} at {:>10}  {}", format_seconds(gap.seconds), format_seconds(gap.begin_s),
                 gap.host.empty() ? translator_.say("nothing that was seen") : shortened(gap.host, width_ - 28)) +
             "\n";
  }
}

void Page::add_tables() {
  if (!trace_.kernels.empty()) {
    head(translator_.say("kernels by time (* matrix units)"));
  }
  for (const KernelUse& kernel : trace_.kernels) {
    row(kernel.total_s, trace_.kernel_s, kernel.count,
        (kernel.matrix_units ? "* " : "  ") + shortened(kernel.name, width_ - kNumbers - 2));
  }
  if (!trace_.copies.empty()) {
    head(translator_.say("copies and fills by time"));
  }
  for (const CopyUse& copy : trace_.copies) {
    const bool known = copy.bytes > 0;
    row(copy.total_s, 0, copy.count,
        printable_line(copy.kind) +
            (known ? ", " + format_bytes(static_cast<std::uint64_t>(copy.bytes)) : std::string()) +
            (known && copy.total_s > 0 ? ", " + format_number(copy.bytes / copy.total_s * 1e-9) + " GB/s" : ""));
  }
  if (!trace_.operators.empty()) {
    head(translator_.say("operators by the host's time in them"));
  }
  for (const OperatorUse& use : trace_.operators) {
    row(use.self_s, trace_.step_s.sum > 0 ? trace_.step_s.sum : trace_.span_s, use.count,
        shortened(use.name, width_ - kNumbers));
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

std::string to_text(const TraceSummary& trace, int width, Language language) {
  return Page(trace, width, language).text();
}

}  // namespace unidle::trace
