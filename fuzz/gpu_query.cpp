#include <cmath>

#include "target.h"
#include "unidle/logs/gpu_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return unidle::fuzz::one_input(data, size, [](unidle::logs::Source& source) {
    const unidle::logs::GpuLog log = unidle::logs::read_gpu_query(source);
    for (const unidle::logs::GpuUse& use : log.gpus) {
      if (use.utilisation && !(use.utilisation.mean() >= 0 && use.utilisation.most <= 1.01)) {
        std::abort();
      }
    }
  });
}
