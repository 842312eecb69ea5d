#include "target.h"
#include "unidle/trace/summary.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return unidle::fuzz::one_input(data, size, [](unidle::logs::Source& source) {
    const unidle::trace::TraceSummary trace = unidle::trace::read_trace(source);
    if (trace.parts) {
      const auto& parts = *trace.parts;
      const double sum = parts.input + parts.sync + parts.transfer + parts.optimizer + parts.rest;
      if (!(sum > 0.99 && sum < 1.01)) {
        std::abort();
      }
    }
  });
}
