// The key of an entry: the SHA-256 of everything its content depends on.
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

/// 32 uniformly distributed bytes: any of them may serve as a hash.
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
  /// Returns nothing unless `text` is exactly that.
  static std::optional<Key> from_hex(std::string_view text);
};

/// The SHA-256 of these bytes, as sha256sum prints it. Throws kMissing when OpenSSL lacks it.
Key sha256_of(std::string_view bytes);

/// Builds a key from parts. Name, kind and length of each part are hashed too, so that different lists of parts never
/// give the same bytes. The order of parts matters. Not thread-safe; call finish() once.
class KeyBuilder {
 public:
  KeyBuilder();
  ~KeyBuilder();
  KeyBuilder(const KeyBuilder&) = delete;
  KeyBuilder& operator=(const KeyBuilder&) = delete;

  KeyBuilder& text(std::string_view name, std::string_view value);
  KeyBuilder& bytes(std::string_view name, std::string_view value);
  KeyBuilder& integer(std::string_view name, std::int64_t value);
  /// By its bits: 0.0 and -0.0 differ, all NaNs are equal.
  KeyBuilder& real(std::string_view name, double value);
  Key finish();

 private:
  void part(char kind, std::string_view name, std::string_view value);

  void* context_;  // EVP_MD_CTX
};

/// The key of a predictor's result for an input. `parameters` in canonical form: JSON with sorted keys and no blanks.
/// `layout` names the tensors of the entry (dtype and order of axes), for predictors with several layouts.
struct FeatureKey {
  std::string_view input;
  std::string_view identity;
  std::string_view version;
  std::string_view parameters = "{}";
  std::string_view layout;
};
Key key_of(const FeatureKey& parts);

/// The key of a user-given name.
Key key_of_name(std::string_view name);
/// The key of a name of arbitrary bytes; never equals that of a text.
Key key_of_bytes_name(std::string_view name);

}  // namespace unidle::cache

template <>
struct std::hash<unidle::cache::Key> {
  std::size_t operator()(const unidle::cache::Key& key) const noexcept { return key.prefix(); }
};
