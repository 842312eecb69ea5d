#include "unidle/train/memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>
#include <malloc.h>

#include <new>
#include <string_view>

#include "unidle/base/error.h"

namespace unidle::train {

bool is_out_of_memory(const std::exception& failure) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&failure) != nullptr ||
      dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) {
    return true;
  }
  if (const auto* error = dynamic_cast<const Error*>(&failure)) {
    return error->code() == ErrorCode::kOutOfMemory;
  }
  // Torch's host allocator, cuDNN and cuBLAS throw errors of their common kind.
  const std::string_view text = failure.what();
  return text.find("out of memory") != std::string_view::npos ||
         text.find("not enough memory") != std::string_view::npos ||
         text.find("allocate memory") != std::string_view::npos || text.find("ALLOC_FAILED") != std::string_view::npos;
}

void flush_memory(at::Device device) {
  if (device.is_cpu()) {
    malloc_trim(0);
  } else {
    c10::getDeviceAllocator(device.type())->emptyCache();
  }
}

}  // namespace unidle::train
