// What names an entry: the SHA-256 of all that its content depends on.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace unidle::cache {

/// 32 bytes, evenly spread: any of them may be taken as a hash.
struct Key {
  std::array<std::uint8_t, 32> bytes{};

  auto operator<=>(const Key&) const = default;
  /// The first eight bytes as a number.
  std::uint64_t prefix() const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  /// 64 lower-case hexadecimal digits.
  std::string hex() const;
  /// Nothing unless `text` is exactly that.
  static std::optional<Key> from_hex(std::string_view text);
};

/// Of these bytes alone, as sha256sum gives it. Throws kMissing where this machine's OpenSSL has none.
Key sha256_of(std::string_view bytes);

/// Collects the parts of a key. Each part has a name and a kind, and its length is hashed before it, so that no two
/// lists of parts give the same bytes. The order of the parts counts. Not thread-safe; finish() once.
class KeyBuilder {
 public:
  KeyBuilder();
  ~KeyBuilder();
  KeyBuilder(const KeyBuilder&) = delete;
  KeyBuilder& operator=(const KeyBuilder&) = delete;

  KeyBuilder& text(std::string_view name, std::string_view value);
  KeyBuilder& bytes(std::string_view name, std::string_view value);
  KeyBuilder& integer(std::string_view name, std::int64_t value);
  /// By its bits: 0.0 and -0.0 differ, and every NaN is the same.
  KeyBuilder& real(std::string_view name, double value);
  Key finish();

 private:
  void part(char kind, std::string_view name, std::string_view value);

  void* context_;  // EVP_MD_CTX
};

/// The key of what a predictor makes of an input. `parameters` in canonical form: JSON with sorted keys and no blanks.
/// `layout` names what the entry's tensors are (dtype and order of axes), for predictors that can give several.
struct FeatureKey {
  std::string_view input;
  std::string_view identity;
  std::string_view version;
  std::string_view parameters = "{}";
  std::string_view layout;
};
Key key_of(const FeatureKey& parts);

/// The key of a name that a user gave.
Key key_of_name(std::string_view name);
/// The key of a name of any bytes: never that of a text.
Key key_of_bytes_name(std::string_view name);

}  // namespace unidle::cache

template <>
struct std::hash<unidle::cache::Key> {
  std::size_t operator()(const unidle::cache::Key& key) const noexcept { return key.prefix(); }
};
