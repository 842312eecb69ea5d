// Compares two traces: of one program before and after a change, of two ranks, or of two devices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "unidle/base/printable.h"
#include "unidle/base/units.h"
#include "unidle/language/translator.h"
#include "unidle/trace/document.h"

namespace unidle::trace {

namespace {

constexpr double kLeastShare = 0.005;  // of the window, in either trace; shorter times are left out

/// The unit of comparison: a step when both traces mark steps, otherwise the whole window.
double counted_in(const TraceSummary& trace, bool by_step) {
  return by_step ? static_cast<double>(trace.step_s.count) : 1;
}

class Sheet {
 public:
  Sheet(const TraceSummary& before, const TraceSummary& after, Language language)
      : before_(before), after_(after), translator_{language} {
    by_step_ = before.step_s.count > 0 && after.step_s.count > 0;
    const std::string first = translator_.word("before");
    const std::string second = translator_.word("after");
    text_ = fmt::format("{:<7} {}\n{:<7} {}\n\n{:<34}{:>11} {:>11}  {}\n", first, printable_line(before.file), second,
                        printable_line(after.file),
                        by_step_ ? translator_.say("of a step") : translator_.say("of the window"), first, second,
                        translator_.word("change"));
  }

  void row(std::string_view name, std::optional<double> before_s, std::optional<double> after_s) {
    const auto cell = [](std::optional<double> seconds) { return seconds ? format_seconds(*seconds) : "-"; };
    std::string change;
    if (before_s && after_s) {
      const double more = *after_s - *before_s;
      change = fmt::format("{}{}", more < 0 ? "-" : "+", format_seconds(std::abs(more)));
      change += *before_s > 0 ? fmt::format(" ({:.2f}x)", *after_s / *before_s) : "";
    }
    text_ += fmt::format("  {:<32}{:>11} {:>11}  {}\n", name, cell(before_s), cell(after_s), change);
  }

  /// A time of both windows, left out when it is negligible in both.
  template <typename Time>
  void time(std::string_view name, const Time& seconds_of) {
    const double before = seconds_of(before_);
    const double after = seconds_of(after_);
    if (before >= kLeastShare * before_.window_s || after >= kLeastShare * after_.window_s) {
      row(name, before / counted_in(before_, by_step_), after / counted_in(after_, by_step_));
    }
  }

  void causes() {
    const auto of = [](const TraceSummary& trace, std::string_view name) {
      const auto all = causes_of(trace.idle.value_or(IdleTime{}));
      const auto found = std::find_if(all.begin(), all.end(), [&](const IdleCause& one) { return one.name == name; });
      return found == all.end() ? 0.0 : found->seconds;
    };
    std::vector<std::string_view> names;
    for (const TraceSummary* trace : {&before_, &after_}) {
      for (const IdleCause& cause : causes_of(trace->idle.value_or(IdleTime{}))) {
        if (std::find(names.begin(), names.end(), cause.name) == names.end()) {
          names.push_back(cause.name);
        }
      }
    }
    for (const std::string_view name : names) {
      time("  " + translator_.word(name), [&](const TraceSummary& trace) { return of(trace, name); });
    }
  }

  /// The longest rows of both traces, with a dash when the other trace does not list the row.
  template <typename Row>
  void rows(const std::string& title, const std::vector<Row>& before, const std::vector<Row>& after,
            double Row::*seconds, int width) {
    std::vector<std::string> names;
    for (const auto* list : {&before, &after}) {
      for (const Row& one : *list) {
        if (std::find(names.begin(), names.end(), one.name) == names.end()) {
          names.push_back(one.name);
        }
      }
    }
    text_ += names.empty() ? "" : fmt::format("\n{}\n", title);
    const auto of = [&](const std::vector<Row>& list, const TraceSummary& trace, const std::string& name) {
      const auto found = std::find_if(list.begin(), list.end(), [&](const Row& one) { return one.name == name; });
      return found == list.end() ? std::nullopt : std::optional((*found).*seconds / counted_in(trace, by_step_));
    };
    for (const std::string& name : names) {
      const auto first = of(before, before_, name);
      const auto second = of(after, after_, name);
      const auto cell = [](std::optional<double> time) { return time ? format_seconds(*time) : "-"; };
      text_ += fmt::format("  {:>10} {:>10}  {}\n", cell(first), cell(second), shortened(name, width - 26));
    }
  }

  std::string text() && { return std::move(text_); }
  const Translator& translator() const { return translator_; }

 private:
  const TraceSummary& before_;
  const TraceSummary& after_;
  Translator translator_;
  bool by_step_ = false;
  std::string text_;
};

}  // namespace

std::string comparison_text(const TraceSummary& before, const TraceSummary& after, int width, Language language) {
  Sheet sheet(before, after, language);
  const Translator& translator = sheet.translator();
  sheet.time(translator.word("window"), [](const TraceSummary& trace) { return trace.window_s; });
  sheet.time(translator.say("device busy"),
             [](const TraceSummary& trace) { return trace.busiest() == nullptr ? 0.0 : trace.busiest()->busy_s; });
  sheet.time(translator.say("exchange not overlapped"),
             [](const TraceSummary& trace) { return trace.communication_alone_s; });
  sheet.time(translator.say("copies not overlapped"), [](const TraceSummary& trace) { return trace.copying_alone_s; });
  sheet.time(translator.say("device idle"),
             [](const TraceSummary& trace) { return trace.idle.value_or(IdleTime{}).idle_s; });
  sheet.causes();
  sheet.rows(translator.say("kernels by time: before, after"), before.kernels, after.kernels, &KernelUse::total_s,
             width);
  sheet.rows(translator.say("operators by the host's time in them: before, after"), before.operators, after.operators,
             &OperatorUse::self_s, width);
  return std::move(sheet).text();
}

}  // namespace unidle::trace
