// What is shown of an array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "unidle/data/source.h"

namespace unidle::data::inspect_kinds {

/// "float32 [2, 3]".
std::string array_type(DType dtype, std::span<const std::int64_t> shape);
/// The first values.
std::string values_text(DType dtype, std::span<const std::byte> values);

}  // namespace unidle::data::inspect_kinds
