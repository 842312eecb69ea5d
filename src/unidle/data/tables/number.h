// Parses numbers in the cells of a table.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::data::tables {

/// True for an empty cell and for pandas' words for missing values, which are never numbers.
bool is_missing(std::string_view cell);

/// Parses the whole cell as a correctly rounded number, ignoring blanks around it; nothing if it is not a number.
/// Accepts exponents, signs, "inf" and "nan". Uses fast_float.
std::optional<double> cell_number(std::string_view cell, char decimal = '.');

/// Strips spaces and tabs.
std::string_view without_blanks(std::string_view cell);

/// The notation of a table's numbers and missing values.
struct NumberFormat {
  NumberFormat() = default;
  /// `missing`: additional texts for missing values. Numbers among them are compared by value.
  NumberFormat(const std::vector<std::string>& missing, char decimal_point);

  char decimal = '.';
  std::vector<std::string> missing{};  // without blanks
  std::vector<double> missing_numbers{};

  bool is_missing(std::string_view cell) const;
  bool is_missing(double value) const {
    return std::find(missing_numbers.begin(), missing_numbers.end(), value) != missing_numbers.end();
  }
};

inline const NumberFormat kPlainNumbers;

/// The fast path for most cells.
struct PlainNumber {
  const char* end = nullptr;  // null when the fast path fails and cell_number() must be used
  double value = 0;
  bool whole = true;  // without a decimal point
};

namespace number {

constexpr std::size_t kGroup = 8;
constexpr std::uint64_t kMostExact = std::uint64_t{1} << 53;  // doubles represent every whole number up to here
constexpr std::size_t kMostDigits = 18;                       // any number of this many digits fits into 64 bits

/// 10^0 to 10^15.
template <typename Number>
constexpr std::array<Number, 16> kPowers = [] {
  std::array<Number, 16> powers{1};
  for (std::size_t i = 1; i < powers.size(); ++i) {
    powers[i] = powers[i - 1] * 10;
  }
  return powers;
}();

struct Digits {
  std::uint64_t value;
  std::size_t count;
};

/// Parses up to eight digits at once, without a loop whose end would be mispredicted.
inline Digits read_group(const char* at) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  bytes ^= 0x3030303030303030U;  // digits become their values, everything else exceeds 9
  const std::uint64_t others = (bytes | (bytes + 0x0606060606060606U)) & 0xF0F0F0F0F0F0F0F0U;
  const auto count = static_cast<std::size_t>(std::countr_zero(others)) / 8;
  const std::size_t half = (kGroup - count) * 4;
  bytes = bytes << half << half;      // zeros before the first digit, nothing after the last
  bytes = bytes * 10 + (bytes >> 8);  // pairs of digits, then fours, then all (as simdjson does)
  constexpr std::uint64_t kMask = 0x000000FF000000FFU;
  constexpr std::uint64_t kFirst = 100 + (std::uint64_t{1000000} << 32);
  constexpr std::uint64_t kSecond = 1 + (std::uint64_t{10000} << 32);
  return {((bytes & kMask) * kFirst + ((bytes >> 16) & kMask) * kSecond) >> 32, count};
}

/// Parses up to fifteen digits; returns sixteen for more.
inline Digits read_digits(const char* at) {
  Digits digits = read_group(at);
  if (digits.count == kGroup) {
    const Digits more = read_group(at + kGroup);
    digits.value = digits.value * kPowers<std::uint64_t>[more.count] + more.value;
    digits.count += more.count;
  }
  return digits;
}

}  // namespace number

/// Parses "-12.5": digits with at most one point and fewer than sixteen digits before and after it. Doubles hold their
/// whole number and the power of ten exactly, so the quotient is correctly rounded (Clinger 1990). REQUIRES: 40 bytes
/// are readable, and a little-endian machine.
inline PlainNumber plain_number(const char* at) {
  static_assert(std::endian::native == std::endian::little);
  const bool negative = *at == '-';
  at += negative ? 1 : 0;
  const number::Digits before = number::read_digits(at);
  at += before.count;
  std::uint64_t digits = before.value;
  std::size_t count = before.count;
  auto value = static_cast<double>(digits);
  const bool whole = *at != '.';
  if (!whole) {
    const number::Digits behind = number::read_digits(++at);
    at += behind.count;
    count += behind.count;
    if (behind.count >= 2 * number::kGroup) {
      return {};
    }
    digits = digits * number::kPowers<std::uint64_t>[behind.count] + behind.value;
    value = static_cast<double>(digits) / number::kPowers<double>[behind.count];
  }
  if (count == 0 || count > number::kMostDigits || before.count >= 2 * number::kGroup || digits > number::kMostExact) {
    return {};
  }
  const std::uint64_t sign = std::uint64_t{negative} << 63;
  return {at, std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) ^ sign), whole};
}

}  // namespace unidle::data::tables
