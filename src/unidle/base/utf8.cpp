#include "unidle/base/utf8.h"

namespace unidle {

CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) {
    return {lead, 1};
  }
  const std::size_t bytes = lead >= 0xF0 && lead < 0xF5 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (bytes == 0 || lead >= 0xF5 || text.size() < bytes) {
    return {};
  }
  std::uint32_t value = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) {
      return {};
    }
    value = value << 6U | (byte(i) & 0x3FU);
  }
  static constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  return value < kLeast[bytes] || surrogate || value > 0x10FFFF ? CodePoint{} : CodePoint{value, bytes};
}

}  // namespace unidle
