// Decodes UTF-8, as strictly as the Unicode Standard requires.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace unidle {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: not valid UTF-8 (truncated, overlong, a surrogate, beyond U+10FFFF)
};

/// The first code point of `text`, which must not be empty.
CodePoint first_code_point(std::string_view text);

}  // namespace unidle
