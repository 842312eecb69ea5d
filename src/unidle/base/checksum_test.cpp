#include "unidle/base/checksum.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

namespace unidle {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Checksum, CastagnoliIsThatOfTheStandard) {
  EXPECT_EQ(crc32c(bytes_of("")), 0U);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
  // RFC 3720, appendix B.4
  EXPECT_EQ(crc32c(std::vector<std::byte>(32)), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43U);
}

TEST(Checksum, CastagnoliIsTheSameBitByBit) {
  std::mt19937 draws(3);
  std::vector<std::byte> bytes(300);
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(draws());
  }
  for (std::size_t length = 0; length <= bytes.size(); ++length) {
    const std::span<const std::byte> part = std::span<const std::byte>(bytes).first(length);
    EXPECT_EQ(crc32c(part), crc32c_bit_by_bit(part)) << length;
  }
}

}  // namespace
}  // namespace unidle
