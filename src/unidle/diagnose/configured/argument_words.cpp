#include "unidle/diagnose/configured/argument_words.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "unidle/base/characters.h"

namespace unidle::diagnose {

namespace {

constexpr std::size_t kMostScript_bytes = 4 << 20;

bool in_option(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; }

/// Quoted options in the order of the text, with the place behind each.
struct Quoted {
  std::string option;
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::vector<Quoted> quoted_options(const std::string& text) {
  std::vector<Quoted> found;
  for (std::size_t at = 0; at + 2 < std::min(text.size(), kMostScript_bytes); ++at) {
    const char quote = text[at];
    if ((quote != '"' && quote != '\'') || text[at + 1] != '-') {
      continue;
    }
    std::size_t end = at + 1;
    while (end < text.size() && in_option(text[end])) {
      ++end;
    }
    if (end < text.size() && text[end] == quote && end > at + 2) {
      found.push_back({text.substr(at + 1, end - at - 1), at, end + 1});
      at = end;
    }
  }
  return found;
}

bool is_long(const std::string& option) { return option.starts_with("--"); }

bool only_comma_between(const std::string& text, std::size_t from, std::size_t to) {
  std::size_t commas = 0;
  for (std::size_t i = from; i < to; ++i) {
    commas += text[i] == ',';
    if (text[i] != ',' && std::isspace(static_cast<unsigned char>(text[i])) == 0) {
      return false;
    }
  }
  return commas == 1;
}

class OptionNames {
 public:
  explicit OptionNames(const std::string& scripts) {
    const std::vector<Quoted> quoted = quoted_options(scripts);
    for (std::size_t i = 0; i < quoted.size(); ++i) {
      if (is_long(quoted[i].option)) {
        long_.insert(quoted[i].option);
      }
      if (i == 0 || !only_comma_between(scripts, quoted[i - 1].end, quoted[i].begin)) {
        continue;
      }
      const auto& [a, b] = std::pair(quoted[i - 1].option, quoted[i].option);
      if (is_long(a) != is_long(b)) {
        const std::string& name = is_long(a) ? a : b;
        const auto [known, added] = short_.try_emplace(is_long(a) ? b : a, name);
        known->second = known->second == name ? name : "";  // two parsers have it: not clear
      }
    }
  }

  std::optional<std::string> of_short(const std::string& option) const {
    const auto found = short_.find(option);
    return found == short_.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
  }

  /// The only long option that begins so; none where it is one itself.
  std::optional<std::string> of_prefix(const std::string& prefix) const {
    const auto first = long_.lower_bound(prefix);
    if (prefix.size() < 3 || first == long_.end() || !first->starts_with(prefix) || *first == prefix) {
      return std::nullopt;
    }
    const auto second = std::next(first);
    return second != long_.end() && second->starts_with(prefix) ? std::nullopt : std::optional(*first);
  }

 private:
  std::set<std::string> long_;
  std::map<std::string, std::string> short_;
};

std::string written_out(const std::string& word, const OptionNames& names) {
  if (word.size() < 2 || word[0] != '-') {
    return word;
  }
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals);
  if (is_long(word)) {
    const auto found = names.of_prefix(name);
    return found ? *found + value : word;
  }
  if (const auto found = names.of_short(name)) {
    return *found + value;
  }
  const auto attached = names.of_short(word.substr(0, 2));  // -b16
  return attached && word.size() > 2 ? *attached + "=" + word.substr(2) : word;
}

}  // namespace

std::vector<std::string> with_long_options(const std::vector<std::string>& command, const std::string& scripts) {
  std::vector<std::string> words = command;
  std::size_t begin = 1;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].ends_with(".py") || (i > 0 && words[i - 1] == "-m")) {
      begin = i + 1;
      break;
    }
  }
  const OptionNames names(scripts);
  for (std::size_t i = begin; i < words.size(); ++i) {
    words[i] = written_out(words[i], names);
  }
  return words;
}

std::string argument_name(std::string_view key) {
  std::string name(key.substr(key.find_last_of("./") + 1));
  name.erase(0, std::min(name.find_first_not_of("-+"), name.size()));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

namespace {

/// Behind a name: "= x", "//= x" and the like give it another value; nothing for anything else.
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

/// The owner of an attribute or entry that begins at `at`: "args" of args.batch_size; empty where it is none.
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
