// What programs write that watch GPUs, whatever it looks like: every format reads it.
#include "fuzz.h"
#include "unidle/logs/gpu_format.h"

namespace unidle::fuzz::targets {

const Target& gpu_formats() {
  static const Target kTarget = {
      "gpu_formats", [](std::string_view bytes) {
        logs::gpu_format_of(bytes);
        for (const logs::GpuFormat* format : logs::all_gpu_formats()) {
          read_source(bytes, [format](logs::Source& source) {
            for (const logs::GpuUse& use : format->read(source, {}).gpus) {
              require(!use.utilisation || (use.utilisation.mean() >= 0 && use.utilisation.most <= 1.01));
            }
          });
        }
      }};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
