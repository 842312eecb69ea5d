// Values out of JSON documents that others wrote, and that may hold anything.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace unidle {

/// What `text` says, or a discarded value when it is no JSON or nested deeper than anything that writes for us does:
/// copying and writing a value take the stack once a level.
nlohmann::json parse_json(std::string_view text);

/// `document` as valid UTF-8 JSON, indented by `indent` (-1: on one line). Bytes that are no UTF-8 are replaced; what a
/// terminal would act upon (see acts_unseen) is written as an escape, which says the same.
std::string json_text(const nlohmann::json& document, int indent = 2);
std::string json_text(const nlohmann::ordered_json& document, int indent = 2);

/// The text at `key`; empty where `object` is none, has no such key, or has something else there.
std::string text_in(const nlohmann::json& object, std::string_view key);

/// The finite number at `key`, the whole number nearest to it, or the truth; nothing in the same cases. None of them
/// throws.
std::optional<double> number_in(const nlohmann::json& object, std::string_view key);
std::optional<std::int64_t> whole_in(const nlohmann::json& object, std::string_view key);
std::optional<bool> flag_in(const nlohmann::json& object, std::string_view key);

/// A text as it is, without quotes, and all else as JSON; bytes that are no UTF-8 are replaced, so that it never
/// throws.
std::string plain_text(const nlohmann::json& value);

/// All texts in it with their secrets masked, see secrets.h: values at keys that name one, and lists of nothing but
/// texts as the words of a command.
void mask_secrets(nlohmann::json& value);

}  // namespace unidle
