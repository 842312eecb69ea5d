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

std::uint32_t crc32c_bit_by_bit(std::span<const std::byte> bytes) {
  constexpr std::uint32_t kPolynomial = 0x82f63b78;  // RFC 3720, appendix B.4, bits reversed
  std::uint32_t sum = ~0U;
  for (const std::byte byte : bytes) {
    sum ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      sum = (sum >> 1) ^ ((sum & 1U) != 0 ? kPolynomial : 0U);
    }
  }
  return ~sum;
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
#ifdef UNIDLE_HAS_ISAL
  if (!bytes.empty()) {
    // The function only reads; its C header lacks the const.
    auto* first = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    return ~::crc32_iscsi(first, static_cast<int>(bytes.size()), ~0U);
  }
#endif
  return crc32c_bit_by_bit(bytes);
}

}  // namespace unidle
