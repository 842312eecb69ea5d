#include "unidle/data/inspect/cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace unidle::data::inspect_kinds {

namespace {

/// IEEE 754 binary16, which not every compiler supports.
float half_value(std::uint16_t bits) {
  const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
  const int exponent = (bits >> 10) & 0x1F;
  const auto fraction = static_cast<float>(bits & 0x3FFU);
  if (exponent == 0x1F) {
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  }
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

std::string half_text(const std::byte* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return fmt::format("{}", half_value(bits));
}

template <typename Value>
std::string value_text(const std::byte* at) {
  Value value{};
  std::memcpy(&value, at, sizeof value);
  return fmt::format("{}", value);
}

std::string value_text(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::kBool: return value_text<std::uint8_t>(at) != "0" ? "true" : "false";
    case DType::kU8: return fmt::format("{}", std::to_integer<int>(*at));
    case DType::kI8: return fmt::format("{}", static_cast<int>(static_cast<std::int8_t>(*at)));
    case DType::kU16: return value_text<std::uint16_t>(at);
    case DType::kI16: return value_text<std::int16_t>(at);
    case DType::kU32: return value_text<std::uint32_t>(at);
    case DType::kI32: return value_text<std::int32_t>(at);
    case DType::kU64: return value_text<std::uint64_t>(at);
    case DType::kI64: return value_text<std::int64_t>(at);
    case DType::kF16: return half_text(at);
    case DType::kBF16: return {};  // numpy's files have no bf16
    case DType::kF32: return value_text<float>(at);
    case DType::kF64: return value_text<double>(at);
  }
  return {};
}

}  // namespace

std::string array_type(DType dtype, std::span<const std::int64_t> shape) {
  return fmt::format("{} [{}]", name_of(dtype), fmt::join(shape, ", "));
}

std::string values_text(DType dtype, std::span<const std::byte> values) {
  const std::size_t count = values.size() / size_of(dtype);
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(count, kShownValues); ++i) {
    shown.push_back(value_text(dtype, values.data() + i * size_of(dtype)));
  }
  return fmt::format("{}{}", fmt::join(shown, ", "), count > kShownValues ? ", ..." : "");
}

}  // namespace unidle::data::inspect_kinds
