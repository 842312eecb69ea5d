#include "unidle/base/checksum.h"

#include <zlib.h>

#ifdef UNIDLE_HAS_ISAL
#include <isa-l/crc.h>
#endif

namespace unidle {

std::uint32_t crc32_by_zlib(std::uint32_t before, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint32_t crc32(std::uint32_t before, std::span<const std::byte> bytes) {
  if (bytes.empty()) {
    return before;
  }
#ifdef UNIDLE_HAS_ISAL
  return ::crc32_gzip_refl(before, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
#else
  return crc32_by_zlib(before, bytes);
#endif
}

}  // namespace unidle
