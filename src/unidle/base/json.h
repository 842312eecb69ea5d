// Reads values of untrusted JSON documents.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace unidle {

/// Parses `text`; returns a discarded value when it is not JSON, or nested deeper than any document written for unidle:
/// copying and writing a value use the stack for each level.
nlohmann::json parse_json(std::string_view text);

/// `document` as valid UTF-8 JSON, indented by `indent` (-1: on one line). Invalid UTF-8 is replaced; characters that a
/// terminal interprets (see is_interpreted) are escaped, which does not change the value.
std::string json_text(const nlohmann::json& document, int indent = 2);
std::string json_text(const nlohmann::ordered_json& document, int indent = 2);

/// The text at `key`; empty if `object` is not an object, has no such key, or has another type there.
std::string text_in(const nlohmann::json& object, std::string_view key);

/// The finite number at `key`, the nearest integer to it, or the boolean; nothing in the same cases. Never throws.
std::optional<double> number_in(const nlohmann::json& object, std::string_view key);
std::optional<std::int64_t> whole_in(const nlohmann::json& object, std::string_view key);
std::optional<bool> flag_in(const nlohmann::json& object, std::string_view key);

/// A string without quotes, any other value as JSON. Invalid UTF-8 is replaced, so it never throws.
std::string plain_text(const nlohmann::json& value);

/// Masks the secrets in all strings, see secrets.h: values of keys that name a secret, and lists of strings as the
/// words of a command.
void mask_secrets(nlohmann::json& value);

}  // namespace unidle
