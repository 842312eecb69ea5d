#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "unidle/base/error.h"
#include "unidle/data/inspect/kinds.h"
#include "unidle/data/sources/npy.h"

namespace unidle::data::inspect_kinds {

namespace {

/// IEEE 754 binary16: not every compiler has a type for it.
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
    case DType::kBF16: return {};  // numpy's files have none
    case DType::kF32: return value_text<float>(at);
    case DType::kF64: return value_text<double>(at);
  }
  return {};
}

/// The first values of a sample.
std::string cell_text(const Field& field, std::span<const std::byte> bytes) {
  constexpr std::size_t kMost = 4;
  const std::size_t count = bytes.size() / size_of(field.dtype);
  std::vector<std::string> values;
  for (std::size_t i = 0; i < std::min(count, kMost); ++i) {
    values.push_back(value_text(field.dtype, bytes.data() + i * size_of(field.dtype)));
  }
  return fmt::format("{}{}", fmt::join(values, ", "), count > kMost ? ", ..." : "");
}

std::vector<std::string> sample_of(const Source& source, std::int64_t item) {
  std::vector<std::vector<std::byte>> memory;
  for (const Field& field : source.fields()) {
    memory.emplace_back(field.bytes());
  }
  Places places(memory.begin(), memory.end());
  source.read({item}, {&places, 1});
  std::vector<std::string> cells;
  for (std::size_t field = 0; field < memory.size(); ++field) {
    cells.push_back(cell_text(source.fields()[field], memory[field]));
  }
  return cells;
}

}  // namespace

Inspection npy(const std::string& path, const InspectOptions& options) {
  Inspection result;
  result.kind = "npy";
  try {
    const std::vector<std::string> names = NpySource::find_fields(path);
    for (const std::string& name : names) {  // each by itself, so that each one's trouble is told
      try {
        const NpySource source(path, {name});
        const Field& field = source.fields().front();
        result.columns.push_back(
            {name, fmt::format("{} [{}]", name_of(field.dtype), fmt::join(field.shape, ", ")), {}});
      } catch (const Error& error) {
        result.add_problem(error);
        result.columns.push_back({name, "unknown", {}});
      }
    }
    if (!result.problems.empty()) {
      return result;
    }
    const NpySource source(path, names);
    result.rows = source.items();
    for (std::int64_t item = 0; item < std::min(options.sample_rows, result.rows); ++item) {
      result.sample.push_back(sample_of(source, item));
    }
  } catch (const Error& error) {
    result.add_problem(error);
  }
  return result;
}

}  // namespace unidle::data::inspect_kinds
