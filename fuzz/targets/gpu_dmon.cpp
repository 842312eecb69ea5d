// `nvidia-smi dmon` output.
#include "fuzz.h"
#include "unidle/logs/gpu_log.h"

namespace unidle::fuzz::targets {

const Target& gpu_dmon() {
  static const Target kTarget = {
      "gpu_dmon", [](std::string_view bytes) {
        read_source(bytes, [](logs::Source& source) {
          for (const logs::GpuUse& use : logs::read_gpu_dmon(source).gpus) {
            require(!use.utilisation || (use.utilisation.mean() >= 0 && use.utilisation.most <= 1.01));
          }
        });
      }};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
