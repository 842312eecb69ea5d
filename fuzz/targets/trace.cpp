// A torch profiler trace, and the document that is made of it and kept in records.
#include "fuzz.h"
#include "unidle/trace/document.h"
#include "unidle/trace/summary.h"

namespace unidle::fuzz::targets {

const Target& trace() {
  static const Target kTarget = {
      "trace", [](std::string_view bytes) {
        read_source(bytes, [](logs::Source& source) {
          const unidle::trace::TraceSummary summary = unidle::trace::read_trace(source);
          if (summary.parts) {
            const auto& parts = *summary.parts;
            const double sum = parts.input + parts.sync + parts.transfer + parts.optimizer + parts.rest;
            require(sum > 0.99 && sum < 1.01);
          }
          if (const auto peak_s = summary.seconds_at_peak(); peak_s && summary.step_s) {
            require(*peak_s >= 0 && *peak_s <= *summary.seconds_per_step());
          }
          unidle::trace::to_text(summary, 80);
          const auto again = unidle::trace::summary_from_json(unidle::trace::to_json(summary), "input");
          require(again.events == summary.events && again.kernels.size() == summary.kernels.size());
        });
      }};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
