#include "unidle/data/source_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "unidle/base/error.h"
#include "unidle/base/json.h"

namespace unidle::data {

bool ArrayView::contiguous() const {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    return true;  // without elements strides do not matter
  }
  auto expected = static_cast<std::int64_t>(size_of(dtype));
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] > 1 && strides[axis] != expected) {
      return false;
    }
    expected *= shape[axis];
  }
  return true;
}

namespace {

int hex_digit(char digit) {
  const std::size_t value = std::string_view("0123456789abcdef").find(digit);
  return value == std::string_view::npos ? -1 : static_cast<int>(value);
}

std::optional<std::string> text_of(const nlohmann::json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (!value.is_object() || value.size() != 1 || !value.contains("hex") || !value["hex"].is_string()) {
    return std::nullopt;
  }
  const auto digits = value["hex"].get<std::string>();
  std::string text;
  for (std::size_t at = 0; at + 1 < digits.size(); at += 2) {
    const int high = hex_digit(digits[at]);
    const int low = hex_digit(digits[at + 1]);
    if (high < 0 || low < 0) {
      return std::nullopt;
    }
    text += static_cast<char>(high * 16 + low);
  }
  return text;
}

}  // namespace

SourceOptions::SourceOptions(std::string_view kind, const nlohmann::json& values) : kind_(kind), values_(values) {}

const nlohmann::json* SourceOptions::find(std::string_view name) {
  asked_.push_back(name);
  const auto found = values_.find(name);
  return found == values_.end() || found->is_null() ? nullptr : &*found;
}

void SourceOptions::bad(std::string_view name, std::string_view expected) const {
  const auto found = values_.find(name);
  throw Error(ErrorCode::kUsage, fmt::format("{} option {}", kind_, name),
              fmt::format("expected {}, found {}", expected, found == values_.end() ? "nothing" : plain_text(*found)));
}

std::string SourceOptions::text(std::string_view name) {
  const nlohmann::json* value = find(name);
  const std::optional<std::string> text = value == nullptr ? std::nullopt : text_of(*value);
  if (!text) {
    bad(name, "a text");
  }
  return *text;
}

std::string SourceOptions::word(std::string_view name, std::string_view otherwise) {
  const nlohmann::json* value = find(name);
  return value == nullptr ? std::string(otherwise) : text(name);
}

std::int64_t SourceOptions::integer(std::string_view name, std::int64_t otherwise) {
  const nlohmann::json* value = find(name);
  if (value == nullptr) {
    return otherwise;
  }
  if (!value->is_number_integer()) {
    bad(name, "a whole number");
  }
  return value->get<std::int64_t>();
}

int SourceOptions::small(std::string_view name, int otherwise) {
  const std::int64_t value = integer(name, otherwise);
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
    bad(name, "a smaller number");
  }
  return static_cast<int>(value);
}

double SourceOptions::real(std::string_view name, double otherwise) {
  const nlohmann::json* value = find(name);
  if (value == nullptr) {
    return otherwise;
  }
  if (!value->is_number()) {
    bad(name, "a number");
  }
  return value->get<double>();
}

bool SourceOptions::flag(std::string_view name, bool otherwise) {
  const nlohmann::json* value = find(name);
  if (value == nullptr) {
    return otherwise;
  }
  if (!value->is_boolean()) {
    bad(name, "true or false");
  }
  return value->get<bool>();
}

template <typename Fits>
const nlohmann::json* SourceOptions::list(std::string_view name, std::string_view expected, const Fits& fits) {
  const nlohmann::json* value = find(name);
  if (value != nullptr && (!value->is_array() || !std::all_of(value->begin(), value->end(), fits))) {
    bad(name, expected);
  }
  return value;
}

std::vector<double> SourceOptions::reals(std::string_view name, std::vector<double> otherwise) {
  const auto* value = list(name, "a list of numbers", [](const nlohmann::json& one) { return one.is_number(); });
  return value == nullptr ? std::move(otherwise) : value->get<std::vector<double>>();
}

std::vector<std::int64_t> SourceOptions::integers(std::string_view name, std::vector<std::int64_t> otherwise) {
  const auto* value =
      list(name, "a list of whole numbers", [](const nlohmann::json& one) { return one.is_number_integer(); });
  return value == nullptr ? std::move(otherwise) : value->get<std::vector<std::int64_t>>();
}

std::vector<std::string> SourceOptions::texts(std::string_view name, std::vector<std::string> otherwise) {
  return some_texts(name).value_or(std::move(otherwise));
}

std::optional<std::vector<std::string>> SourceOptions::some_texts(std::string_view name) {
  const auto* value = list(name, "a list of texts", [](const nlohmann::json& one) { return text_of(one).has_value(); });
  if (value == nullptr) {
    return std::nullopt;
  }
  std::vector<std::string> all;
  for (const nlohmann::json& one : *value) {
    all.push_back(*text_of(one));
  }
  return all;
}

std::vector<SourceOptions> SourceOptions::several(std::string_view name) {
  const auto* value = list(name, "a list of objects", [](const nlohmann::json& one) { return one.is_object(); });
  std::vector<SourceOptions> all;
  for (std::size_t i = 0; value != nullptr && i < value->size(); ++i) {
    all.emplace_back(fmt::format("{} {}", kind_, name), (*value)[i]);
  }
  return all;
}

void SourceOptions::done() const {
  for (const auto& [name, value] : values_.items()) {
    if (std::find(asked_.begin(), asked_.end(), name) == asked_.end()) {
      throw Error(ErrorCode::kUsage, fmt::format("{} option {}", kind_, name), "unknown option");
    }
  }
}

std::unique_ptr<Source> open_source(std::string_view kind, std::string_view options_json,
                                    std::span<const ArrayView> arrays) {
  const nlohmann::json values = parse_json(options_json);
  if (!values.is_object()) {
    throw Error(ErrorCode::kUsage, std::string(kind), "options: expected a JSON object");
  }
  for (const SourceKind* known : all_sources()) {
    if (known->name == kind) {
      SourceOptions options(kind, values);
      return known->open(options, arrays);
    }
  }
  throw Error(ErrorCode::kUsage, std::string(kind), "unknown kind of source");
}

}  // namespace unidle::data
