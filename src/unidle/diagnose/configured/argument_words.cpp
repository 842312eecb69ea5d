#include "unidle/diagnose/configured/argument_words.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "unidle/base/characters.h"

namespace unidle::diagnose {

std::string argument_name(std::string_view key) {
  std::string name(key.substr(key.find_last_of("./") + 1));
  name.erase(0, std::min(name.find_first_not_of("-+"), name.size()));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

namespace {

/// The value assigned right after a name by "= x", "//= x" and similar; nothing when there is no assignment.
std::optional<std::string_view> assigned(std::string_view rest) {
  for (const std::string_view sign : {"//=", "/=", "*=", "+=", "-="}) {
    if (rest.starts_with(sign)) {
      return std::string_view("?");
    }
  }
  const bool plain = rest.starts_with('=') && !rest.starts_with("==");
  return plain ? std::optional(trimmed(rest.substr(1))) : std::nullopt;
}

/// args.batch_size, cfg["batch_size"], batch_size
bool is_copy_of(std::string_view value, const std::string& name) {
  value = trimmed(value.substr(0, value.find('#')));
  const bool entry = value.ends_with("\"]") || value.ends_with("']");
  value.remove_suffix(entry ? 2 : 0);
  const bool last = value.ends_with(name);
  const std::string_view before = last ? value.substr(0, value.size() - name.size()) : "";
  return last && std::all_of(before.begin(), before.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                  std::string_view("_.[\"'").find(c) != std::string_view::npos;
         });
}

/// The owner of the attribute or entry that begins at `at`: "args" of args.batch_size; empty when there is none.
std::string_view owner_before(const std::string& text, std::size_t at) {
  std::size_t end = at;
  if (end > 1 && (text[end - 1] == '"' || text[end - 1] == '\'') && text[end - 2] == '[') {
    end -= 2;
  } else if (end > 0 && text[end - 1] == '.') {
    end -= 1;
  } else {
    return {};
  }
  std::size_t begin = end;
  while (begin > 0 && (std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '_')) {
    --begin;
  }
  return std::string_view(text).substr(begin, end - begin);
}

}  // namespace

bool is_reassigned(const std::string& scripts, const std::string& name) {
  for (std::size_t at = scripts.find(name); at != std::string::npos && !name.empty(); at = scripts.find(name, at + 1)) {
    const std::string_view owner = owner_before(scripts, at);
    if (owner.empty() || owner == "self") {
      continue;
    }
    std::size_t behind = at + name.size();
    behind += behind + 1 < scripts.size() && scripts[behind + 1] == ']' ? 2 : 0;
    const std::size_t line_end = std::min(scripts.find('\n', behind), scripts.size());
    const auto value = assigned(trimmed(std::string_view(scripts).substr(behind, line_end - behind)));
    if (value && !is_copy_of(*value, name)) {
      return true;
    }
  }
  return false;
}

}  // namespace unidle::diagnose
