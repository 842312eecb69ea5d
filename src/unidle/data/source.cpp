#include "unidle/data/source.h"

namespace unidle::data {

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kU8: return 1;
    case DType::kF32: return 4;
    case DType::kI64: return 8;
  }
  return 0;
}

std::size_t Field::bytes() const {
  std::size_t count = size_of(dtype);
  for (const std::int64_t extent : shape) {
    count *= static_cast<std::size_t>(extent);
  }
  return count;
}

}  // namespace unidle::data
