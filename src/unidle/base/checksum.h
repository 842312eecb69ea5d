// CRC-32 as in gzip, and CRC-32C (Castagnoli) as in iSCSI and TFRecord.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unidle {

/// Continues the checksum `before` (0 at the start) over `bytes`. Uses ISA-L if the build has it, otherwise zlib; the
/// result is the same.
std::uint32_t crc32(std::uint32_t before, std::span<const std::byte> bytes);
std::uint32_t crc32_by_zlib(std::uint32_t before, std::span<const std::byte> bytes);

/// Uses ISA-L if the build has it, otherwise works bit by bit, which suits short texts only; the result is the same.
/// REQUIRES: fewer than 2^31 bytes.
std::uint32_t crc32c(std::span<const std::byte> bytes);
std::uint32_t crc32c_bit_by_bit(std::span<const std::byte> bytes);

}  // namespace unidle
