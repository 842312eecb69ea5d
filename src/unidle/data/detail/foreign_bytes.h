// Recognises unsupported file formats by their first bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace unidle::data::detail {

struct ForeignBytes {
  std::string what;  // "is compressed with gzip"
  std::string hint;  // what to do
};

/// How many of a file's first bytes foreign_bytes() needs.
inline constexpr std::size_t kForeignHeadBytes = 2048 + 8;

/// Names the format that starts with these bytes; nothing for text and for supported formats.
std::optional<ForeignBytes> foreign_bytes(std::string_view head);

/// Reads the first bytes of a file, as many as foreign_bytes() needs; fewer for a shorter file, none for an unreadable
/// one.
std::string foreign_head(const std::string& path);

}  // namespace unidle::data::detail
