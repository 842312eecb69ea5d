#include "unidle/knobs/same_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>

#include "unidle/base/characters.h"
#include "unidle/base/numbers.h"
#include "unidle/knobs/knob.h"

namespace unidle::knobs {

namespace {

bool is_off(const std::string& plain) { return plain == "false" || plain == "0" || plain == "fp32"; }

bool same_plain(const std::string& a, const std::string& b) { return a == b || (is_off(a) && is_off(b)); }

}  // namespace

std::string plain_value(std::string_view written) {
  while (!written.empty() && std::isspace(static_cast<unsigned char>(written.front())) != 0) {
    written.remove_prefix(1);
  }
  while (!written.empty() && std::isspace(static_cast<unsigned char>(written.back())) != 0) {
    written.remove_suffix(1);
  }
  if (written.size() >= 2 && (written.front() == '"' || written.front() == '\'') && written.back() == written.front()) {
    written = written.substr(1, written.size() - 2);
  }
  std::string text = lower(written);
  if (const auto parsed = parse_number<double>(text)) {
    return fmt::format("{}", *parsed);
  }
  if (text.starts_with("torch.")) {
    text.erase(0, 6);
  }
  static const std::map<std::string, std::string> kSame = {
      {"yes", "true"},   {"on", "true"},      {"no", "false"}, {"off", "false"},     {"none", "false"},
      {"null", "false"}, {"~", "false"},      {"", "false"},   {"bfloat16", "bf16"}, {"float16", "fp16"},
      {"half", "fp16"},  {"float32", "fp32"}, {"gpu", "cuda"}, {"float", "fp32"},
  };
  const auto found = kSame.find(text);
  return found == kSame.end() ? text : found->second;
}

bool same_value(std::string_view a, std::string_view b) { return same_plain(plain_value(a), plain_value(b)); }

bool in_effect(std::string_view knob, std::string_view configured, std::string_view effective) {
  const std::string want = plain_value(configured);
  const std::string have = plain_value(effective);
  const Knob* known = find_knob(knob);
  const bool left_open = known != nullptr && std::count(known->leaves_open.begin(), known->leaves_open.end(), want) > 0;
  if (same_plain(want, have) || want == "auto" || left_open) {
    return true;
  }
  if (want == "true") {
    // A switch is in effect whatever the program chose for it: amp true -> bf16, compile true -> default.
    return have == "1" || (!is_off(have) && !parse_number<double>(have));
  }
  if (have == "true") {
    return want == "1";
  }
  return have.starts_with(want + ":");  // cuda -> cuda:0
}

Value reported_value(std::string_view text) {
  if (text == "true" || text == "false") {
    return text == "true";
  }
  if (const auto whole = parse_number<std::int64_t>(text)) {
    return *whole;
  }
  if (const auto parsed = parse_number<double>(text)) {
    return *parsed;
  }
  return std::string(text);
}

}  // namespace unidle::knobs
