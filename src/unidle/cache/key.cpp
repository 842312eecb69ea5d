#include "unidle/cache/key.h"

#include <openssl/evp.h>

#include <cmath>
#include <limits>

#include "unidle/base/error.h"

namespace unidle::cache {

namespace {

/// Cached: looking the algorithm up takes longer than hashing a short name.
const EVP_MD* sha256() {
  static const EVP_MD* const kAlgorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return kAlgorithm;
}

EVP_MD_CTX* as_context(void* context) { return static_cast<EVP_MD_CTX*>(context); }

[[noreturn]] void cannot_hash() {
  throw Error(ErrorCode::kMissing, "SHA-256", "cannot be computed by this machine's OpenSSL");
}

int nibble_of(char digit) {
  if (digit >= '0' && digit <= '9') {
    return digit - '0';
  }
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

}  // namespace

std::string Key::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(64, '0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    text[2 * i] = kDigits[bytes[i] >> 4];
    text[2 * i + 1] = kDigits[bytes[i] & 15];
  }
  return text;
}

std::optional<Key> Key::from_hex(std::string_view text) {
  Key key;
  if (text.size() != 2 * key.bytes.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < key.bytes.size(); ++i) {
    const int high = nibble_of(text[2 * i]);
    const int low = nibble_of(text[2 * i + 1]);
    if (high < 0 || low < 0) {
      return std::nullopt;
    }
    key.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return key;
}

Key sha256_of(std::string_view bytes) {
  Key key;
  if (EVP_Digest(bytes.data(), bytes.size(), key.bytes.data(), nullptr, sha256(), nullptr) != 1) {
    cannot_hash();
  }
  return key;
}

KeyBuilder::KeyBuilder() : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr || EVP_DigestInit_ex2(as_context(context_), sha256(), nullptr) != 1) {
    EVP_MD_CTX_free(as_context(context_));
    cannot_hash();
  }
}

KeyBuilder::~KeyBuilder() { EVP_MD_CTX_free(as_context(context_)); }

void KeyBuilder::part(char kind, std::string_view name, std::string_view value) {
  std::array<std::uint64_t, 2> lengths = {name.size(), value.size()};
  EVP_DigestUpdate(as_context(context_), &kind, 1);
  EVP_DigestUpdate(as_context(context_), lengths.data(), sizeof lengths);
  EVP_DigestUpdate(as_context(context_), name.data(), name.size());
  EVP_DigestUpdate(as_context(context_), value.data(), value.size());
}

KeyBuilder& KeyBuilder::text(std::string_view name, std::string_view value) {
  part('t', name, value);
  return *this;
}

KeyBuilder& KeyBuilder::bytes(std::string_view name, std::string_view value) {
  part('b', name, value);
  return *this;
}

KeyBuilder& KeyBuilder::integer(std::string_view name, std::int64_t value) {
  part('i', name, {reinterpret_cast<const char*>(&value), sizeof value});
  return *this;
}

KeyBuilder& KeyBuilder::real(std::string_view name, double value) {
  const double canonical = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
  part('r', name, {reinterpret_cast<const char*>(&canonical), sizeof canonical});
  return *this;
}

Key KeyBuilder::finish() {
  Key key;
  if (EVP_DigestFinal_ex(as_context(context_), key.bytes.data(), nullptr) != 1) {
    throw Error(ErrorCode::kInternal, "cache key", "was finished twice");
  }
  return key;
}

Key key_of(const FeatureKey& parts) {
  return KeyBuilder()
      .text("what", "feature")
      .text("identity", parts.identity)
      .text("version", parts.version)
      .text("parameters", parts.parameters)
      .text("layout", parts.layout)
      .bytes("input", parts.input)
      .finish();
}

Key key_of_name(std::string_view name) { return KeyBuilder().text("what", "name").bytes("name", name).finish(); }

Key key_of_bytes_name(std::string_view name) {
  return KeyBuilder().text("what", "bytes name").bytes("name", name).finish();
}

}  // namespace unidle::cache
