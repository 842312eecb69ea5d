#include "unidle/language/sentence.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "unidle/base/characters.h"
#include "unidle/base/numbers.h"
#include "unidle/language/po.h"

namespace unidle {

namespace {

using Values = std::vector<std::string_view>;

constexpr std::string_view kJoint = "; ";
constexpr std::size_t kLeastWords = 2;
/// A sentence contains a value that is a sentence, which may contain another one.
constexpr int kDeepest = 4;

/// True for the inside of {:.2f} and {:d}.
bool is_for_numbers(std::string_view placeholder) {
  return placeholder.find(':') != std::string_view::npos &&
         std::string_view("dfg").find(placeholder.back()) != std::string_view::npos;
}

/// A message taken apart: text[0], placeholder[0], text[1], ..., text[n].
struct Template {
  struct Placeholder {
    std::size_t argument = 0;
    bool is_number = false;  // has a format for numbers, such as {:.2f}
  };
  std::vector<std::string> texts{""};
  std::vector<Placeholder> placeholders;
  bool is_named = false;  // {device} instead of {}
};

Template taken_apart(std::string_view message) {
  Template made;
  for (std::size_t at = 0; at < message.size(); ++at) {
    const char c = message[at];
    const bool is_doubled = at + 1 < message.size() && message[at + 1] == c;
    if ((c == '{' || c == '}') && is_doubled) {
      made.texts.back() += c;
      ++at;
    } else if (c == '{') {
      const std::size_t end = std::min(message.find('}', at), message.size());
      const std::string_view inside = message.substr(at + 1, end - at - 1);
      const std::string_view name = inside.substr(0, inside.find(':'));
      const auto number = parse_number<std::size_t>(name);
      made.is_named = made.is_named || (!name.empty() && !number);
      made.placeholders.push_back({number.value_or(made.placeholders.size()), is_for_numbers(inside)});
      made.texts.emplace_back();
      at = end;
    } else {
      made.texts.back() += c;
    }
  }
  return made;
}

/// Words of at least two letters outside of placeholders.
std::size_t words_in(const Template& message) {
  std::size_t words = 0;
  for (const std::string& text : message.texts) {
    std::size_t letters = 0;
    for (const char c : text + " ") {
      letters = is_letter(c) ? letters + 1 : 0;
      words += letters == 2 ? 1 : 0;
    }
  }
  return words;
}

std::size_t length_of(const Template& message) {
  std::size_t length = 0;
  for (const std::string& text : message.texts) {
    length += text.size();
  }
  return length;
}

/// Two placeholders without text between them cannot be told apart.
bool is_recognisable(const Template& message) {
  const bool joined = std::any_of(message.texts.begin() + 1, message.texts.end() - 1,
                                  [](const std::string& text) { return text.empty(); });
  return !message.is_named && !joined && words_in(message) >= kLeastWords;
}

/// A message of the catalogue and its translation.
struct Entry {
  Template english;
  Template chinese;
};

/// Messages with placeholders, those with most text first: they say most about the sentence.
std::vector<Entry> recognisable_messages() {
  std::vector<Entry> entries;
  for (const auto& [english, chinese] : read_po(zh_CN_po(), "po/zh_CN.po")) {
    Entry entry{taken_apart(english), taken_apart(chinese)};
    if (!entry.english.placeholders.empty() && is_recognisable(entry.english)) {
      entries.push_back(std::move(entry));
    }
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return length_of(a.english) > length_of(b.english); });
  return entries;
}

std::optional<std::string> recognised(std::string_view english, int depth);

bool can_be_value(std::string_view text, bool is_number, int depth) {
  if (is_number) {
    return parse_number<double>(text.starts_with('+') ? text.substr(1) : text).has_value();
  }
  const bool is_quoted = text.find('\n') != std::string_view::npos;  // a patch, say
  return !text.empty() &&
         (is_quoted || text.find(kJoint) == std::string_view::npos || recognised(text, depth).has_value());
}

/// Finds the values of the placeholders from `next` on in `rest`, which begins with the first of them.
bool find_values(const Template& message, std::size_t next, std::string_view rest, int depth, Values& values) {
  const auto [argument, is_number] = message.placeholders[next];
  const std::string& after = message.texts[next + 1];
  if (next + 1 == message.placeholders.size()) {
    values[argument] = rest.substr(0, rest.size() - std::min(rest.size(), after.size()));
    return rest.ends_with(after) && can_be_value(values[argument], is_number, depth);
  }
  for (std::size_t end = rest.find(after, 1); end != std::string_view::npos; end = rest.find(after, end + 1)) {
    values[argument] = rest.substr(0, end);
    if (can_be_value(values[argument], is_number, depth) &&
        find_values(message, next + 1, rest.substr(end + after.size()), depth, values)) {
      return true;
    }
  }
  return false;
}

std::optional<Values> values_of(const Template& message, std::string_view sentence, int depth) {
  Values values(message.placeholders.size());
  const std::string& front = message.texts.front();
  const bool found =
      sentence.starts_with(front) && find_values(message, 0, sentence.substr(front.size()), depth, values);
  return found ? std::optional(values) : std::nullopt;
}

std::string put_together(const Template& message, const Values& values, int depth) {
  std::string text = message.texts.front();
  for (std::size_t i = 0; i < message.placeholders.size(); ++i) {
    const std::string_view value = values[std::min(message.placeholders[i].argument, values.size() - 1)];
    const bool is_sentence = value.find(' ') != std::string_view::npos && value.find('\n') == std::string_view::npos;
    text += is_sentence ? recognised(value, depth).value_or(std::string(value)) : std::string(value);
    text += message.texts[i + 1];
  }
  return text;
}

std::optional<std::string> recognised_whole(std::string_view english, int depth) {
  if (const std::string_view same = translate(Language::kChinese, english); same != english) {
    return std::string(same);
  }
  static const std::vector<Entry> kEntries = recognisable_messages();
  for (const Entry& entry : kEntries) {
    if (const auto values = values_of(entry.english, english, depth)) {
      return put_together(entry.chinese, *values, depth);
    }
  }
  return std::nullopt;
}

/// Translates sentences joined by "; "; nothing when none is known.
std::optional<std::string> recognised_parts(std::string_view english, int depth) {
  for (std::size_t end = english.rfind(kJoint); end != std::string_view::npos && end > 0;
       end = english.rfind(kJoint, end - 1)) {
    const std::string_view front = english.substr(0, end);
    const std::string_view back = english.substr(end + kJoint.size());
    auto translated = recognised_whole(front, depth);
    if (!translated && front.find(kJoint) != std::string_view::npos) {
      continue;
    }
    const auto rest = recognised(back, depth);
    if (translated || rest) {
      return translated.value_or(std::string(front)) + "；" + rest.value_or(std::string(back));
    }
  }
  return std::nullopt;
}

/// Translates "NAME: a sentence"; a name is one word.
std::optional<std::string> recognised_of_name(std::string_view english, int depth) {
  const std::size_t end = english.find(": ");
  if (end == std::string_view::npos || english.find(' ') < end) {
    return std::nullopt;
  }
  const auto rest = recognised(english.substr(end + 2), depth);
  return rest ? std::optional(std::string(english.substr(0, end)) + "：" + *rest) : std::nullopt;
}

std::optional<std::string> recognised(std::string_view english, int depth) {
  if (depth == 0) {
    return std::nullopt;
  }
  auto translated = recognised_whole(english, depth - 1);
  translated = translated ? translated : recognised_parts(english, depth - 1);
  return translated ? translated : recognised_of_name(english, depth - 1);
}

}  // namespace

std::string translate_sentence(Language language, std::string_view english) {
  return language == Language::kEnglish ? std::string(english)
                                        : recognised(english, kDeepest).value_or(std::string(english));
}

}  // namespace unidle
