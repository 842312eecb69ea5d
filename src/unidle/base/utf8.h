// UTF-8, as strictly as the Unicode Standard has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace unidle {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: what stands there is no UTF-8 (cut off, overlong, a surrogate, beyond U+10FFFF)
};

/// The code point that `text`, which must not be empty, begins with.
CodePoint first_code_point(std::string_view text);

}  // namespace unidle
