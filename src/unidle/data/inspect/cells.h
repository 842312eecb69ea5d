// Formats arrays for display.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "unidle/data/source.h"

namespace unidle::data::inspect_kinds {

/// "float32 [2, 3]".
std::string array_type(DType dtype, std::span<const std::int64_t> shape);
constexpr std::size_t kShownValues = 4;
/// The first kShownValues values, with a mark if there are more.
std::string values_text(DType dtype, std::span<const std::byte> values);

}  // namespace unidle::data::inspect_kinds
