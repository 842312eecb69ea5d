// Files of formats that no source reads, by their first bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace unidle::data::detail {

struct ForeignBytes {
  std::string what;  // "is compressed with gzip"
  std::string hint;  // what to do
};

/// How many of a file's first bytes are enough to tell.
inline constexpr std::size_t kForeignHeadBytes = 2048 + 8;

/// What begins with these bytes; nothing for text, and for what a source may read.
std::optional<ForeignBytes> foreign_bytes(std::string_view head);

/// The first bytes of a file, as many as foreign_bytes() wants; fewer of a shorter one, none of one that cannot be
/// read.
std::string foreign_head(const std::string& path);

}  // namespace unidle::data::detail
