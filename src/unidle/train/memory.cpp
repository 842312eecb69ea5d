#include "unidle/train/memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <malloc.h>

namespace unidle::train {

void flush_memory(at::Device device) {
  if (device.is_cpu()) {
    malloc_trim(0);
  } else {
    c10::getDeviceAllocator(device.type())->emptyCache();
  }
}

}  // namespace unidle::train
