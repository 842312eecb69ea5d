// CRC-32 as gzip has it, and CRC-32C (Castagnoli) as iSCSI and TFRecord have it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unidle {

/// Of the bytes behind those that gave `before`; 0 begins. By ISA-L where the build has it, else by zlib: the same
/// number.
std::uint32_t crc32(std::uint32_t before, std::span<const std::byte> bytes);
std::uint32_t crc32_by_zlib(std::uint32_t before, std::span<const std::byte> bytes);

/// By ISA-L where the build has it, else bit by bit, which is for short texts: the same number. REQUIRES: fewer than
/// 2^31 bytes.
std::uint32_t crc32c(std::span<const std::byte> bytes);
std::uint32_t crc32c_bit_by_bit(std::span<const std::byte> bytes);

}  // namespace unidle
