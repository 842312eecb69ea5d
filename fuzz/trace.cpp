#include "unidle/logs/trace.h"
#include "target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return unidle::fuzz::one_input(data, size, [](unidle::logs::Source& source) {
    const unidle::logs::TraceSummary trace = unidle::logs::read_trace(source);
    if (trace.parts) {
      const auto& parts = *trace.parts;
      const double sum = parts.input + parts.sync + parts.transfer + parts.optimizer + parts.rest;
      if (!(sum > 0.99 && sum < 1.01)) {
        std::abort();
      }
    }
  });
}
