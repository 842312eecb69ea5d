// Reads big-endian numbers from files.
#pragma once

#include <cstdint>

namespace unidle::data::detail {

inline std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

}  // namespace unidle::data::detail
