#include "unidle/base/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "unidle/base/characters.h"

namespace unidle {

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.' || c == ',' || c == '_' || c == '-' ||
           c == 'e' || c == 'k';
  });
}

/// Splits a name into parts in lower case: hfToken, HF_TOKEN and --hf-token give {hf, token}.
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts(1);
  char before = '\0';
  for (const char c : name) {
    const bool upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    const bool begins = upper && std::islower(static_cast<unsigned char>(before)) != 0;
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 || begins) {
      parts.emplace_back();
    }
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      parts.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    before = c;
  }
  std::erase(parts, "");
  return parts;
}

/// Values that are not secret: switches, numbers, file paths, shell variables.
bool is_plain(std::string_view value) {
  static const std::set<std::string_view> kWords = {"true", "false", "none", "null", "yes",   "no",
                                                    "on",   "off",   "auto", "True", "False", "None"};
  return value.empty() || kWords.contains(value) || is_number(value) || value.front() == '/' || value.front() == '$' ||
         value.starts_with("./") || value.starts_with("~/") || value == kMasked;
}

struct Shape {
  std::string_view start;
  std::size_t least;  // fewest characters that follow
};

constexpr std::array<Shape, 16> kShapes = {{{"hf_", 20},
                                            {"sk-", 20},
                                            {"ghp_", 20},
                                            {"gho_", 20},
                                            {"ghu_", 20},
                                            {"ghs_", 20},
                                            {"ghr_", 20},
                                            {"github_pat_", 20},
                                            {"glpat-", 16},
                                            {"AKIA", 16},
                                            {"ASIA", 16},
                                            {"xoxb-", 10},
                                            {"xoxp-", 10},
                                            {"xoxa-", 10},
                                            {"AIza", 30},
                                            {"wandb_v1_", 20}}};

/// A token has digits; words joined by dashes have none.
bool is_token(std::string_view word) {
  for (const Shape& shape : kShapes) {
    if (!word.starts_with(shape.start)) {
      continue;
    }
    const std::string_view rest = word.substr(shape.start.size());
    const bool of_aws = shape.start == "AKIA" || shape.start == "ASIA";
    if (of_aws) {
      return rest.size() == shape.least && std::all_of(rest.begin(), rest.end(), [](unsigned char c) {
               return std::isupper(c) != 0 || std::isdigit(c) != 0;
             });
    }
    const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
    const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
    if (rest.size() >= shape.least && std::any_of(rest.begin(), rest.end(), is_letter)) {
      // hf_hub_download_with_retries is a name: tokens contain digits or capitals, not words joined by underscores.
      return std::any_of(rest.begin(), rest.end(), is_digit) ||
             (rest.find('_') == std::string_view::npos && rest.find('-') == std::string_view::npos);
    }
  }
  return false;
}

/// A JSON web token, header.payload.signature: the first two parts are JSON in base64 and start with eyJ. The first
/// part is from `at` to `end`.
bool is_web_token(std::string_view text, std::size_t at, std::size_t end) {
  return end - at >= 10 && text.substr(at, 3) == "eyJ" && text.substr(end, 4) == ".eyJ";
}

std::size_t end_of_word(std::string_view text, std::size_t at) {
  while (at < text.size() && is_word(text[at])) {
    ++at;
  }
  return at;
}

std::size_t end_of_web_token(std::string_view text, std::size_t at) {
  while (at < text.size() && (is_word(text[at]) || text[at] == '.')) {
    ++at;
  }
  return at;
}

bool is_quote(char c) { return c == '"' || c == '\''; }

/// Range of the value after the name that ends at `at`: NAME=value, NAME: value, "NAME": "value", and with `option`
/// --NAME value. Empty if there is none.
std::pair<std::size_t, std::size_t> value_after(std::string_view text, std::size_t at, bool option) {
  const auto skip_blanks = [&] {
    while (at < text.size() && is_blank(text[at])) {
      ++at;
    }
  };
  const std::size_t name_end = at;
  at += at < text.size() && is_quote(text[at]) ? 1 : 0;
  skip_blanks();
  if (at >= text.size()) {
    return {0, 0};
  }
  const bool assigned = (text[at] == '=' || text[at] == ':') && text.substr(at + 1, 1) != "=";
  if (!assigned && !(option && at > name_end && text[at] != '-')) {
    return {0, 0};
  }
  at += assigned ? 1 : 0;
  skip_blanks();
  const char quote = at < text.size() && is_quote(text[at]) ? text[at] : '\0';
  at += quote != '\0' ? 1 : 0;
  const std::size_t begin = at;
  const std::string_view ends = quote != '\0' ? "\n\"'" : "\n\"' \t,;&)}]";
  at = std::min(text.size(), text.find_first_of(ends, begin));
  return {begin, at};
}

/// Range of the password in "user:password" between "://" at `at` and "@"; empty if there is none.
std::pair<std::size_t, std::size_t> password_after(std::string_view text, std::size_t at) {
  std::size_t colon = std::string_view::npos;
  for (std::size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '@') {
      // A token without a user is a password too: https://TOKEN@host.
      return colon != std::string_view::npos ? std::pair(colon + 1, i) : std::pair<std::size_t, std::size_t>(0, 0);
    }
    if (c == '/' || c == '?' || c == '#' || c == '"' || c == '\'' || std::isspace(static_cast<unsigned char>(c)) != 0 ||
        i - at > 300) {
      break;
    }
    colon = c == ':' && colon == std::string_view::npos ? i : colon;
  }
  return {0, 0};
}

bool is_hex_key(std::string_view word) {
  return word.size() == 40 &&
         std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

/// Whether a name mentions a key that may be secret: --key, --wandb-key, WANDB.
bool may_name_key(std::string_view name) {
  const std::vector<std::string> parts = parts_of(name);
  return std::any_of(parts.begin(), parts.end(),
                     [](const std::string& part) { return part == "key" || part == "wandb" || part == "login"; });
}

}  // namespace

bool names_secret(std::string_view name) {
  static const std::set<std::string> kLast = {"token",      "secret",    "password",   "passwd",
                                              "passphrase", "apikey",    "credential", "credentials",
                                              "pwd",        "secretkey", "accesskey"};
  static const std::set<std::string> kBeforeKey = {"api", "secret", "access", "private", "wandb", "auth", "encryption"};
  // Names of text tokens in models and tokenizers.
  static const std::set<std::string> kOfText = {
      "pad",   "eos",     "bos",    "unk",    "sep",    "cls",   "mask",  "max",    "min",  "num",   "n",   "per",
      "image", "special", "start",  "end",    "stop",   "audio", "video", "prompt", "text", "class", "add", "use",
      "patch", "decoder", "target", "source", "forced", "next",  "first", "last",   "drop", "new"};
  const std::vector<std::string> parts = parts_of(name);
  if (parts.empty() || (parts.size() == 1 && parts[0] == "pwd")) {
    return false;  // PWD is the working folder
  }
  const std::string& last = parts.back();
  if (last == "key" || last == "keys") {
    return parts.size() > 1 && kBeforeKey.contains(parts[parts.size() - 2]);
  }
  if (last == "id" && parts.size() > 2 && parts[parts.size() - 2] == "key") {
    return parts[parts.size() - 3] == "access";  // AWS_ACCESS_KEY_ID
  }
  if (last == "token" && parts.size() > 1) {
    return !kOfText.contains(parts[parts.size() - 2]);
  }
  return kLast.contains(last);
}

std::string mask_secrets(std::string_view text) {
  std::string masked;
  std::size_t at = 0;
  const auto hide = [&](std::size_t begin, std::size_t end) {
    masked.append(text.substr(at, begin - at)).append(kMasked);
    at = end;
  };
  std::size_t i = 0;
  while (i < text.size()) {
    if (text.substr(i, 3) == "://") {
      i += 3;
      if (const auto [begin, end] = password_after(text, i); end > begin) {
        hide(begin, end);
        i = end;
      }
      continue;
    }
    if (!is_word(text[i])) {
      ++i;
      continue;
    }
    const std::size_t end = end_of_word(text, i);
    const std::string_view word = text.substr(i, end - i);
    if (is_token(word)) {
      hide(i, end);
      i = end;
    } else if (is_web_token(text, i, end)) {
      i = end_of_web_token(text, end);
      hide(end - word.size(), i);
    } else if (names_secret(word) || may_name_key(word)) {
      const auto [begin, stop] = value_after(text, end, word.starts_with("--"));
      const std::string_view value = text.substr(begin, stop - begin);
      const bool secret = names_secret(word) ? !is_plain(value) : is_hex_key(value);
      if (stop > begin && secret) {
        hide(begin, stop);
      }
      i = std::max(end, stop > begin && secret ? stop : end);
    } else {
      i = end;
    }
  }
  return masked.append(text.substr(at));
}

std::vector<std::string> mask_secrets(const std::vector<std::string>& words) {
  std::vector<std::string> masked;
  std::string_view option;  // the next word is its value
  for (const std::string& word : words) {
    const bool is_value = !option.empty() && !word.starts_with("-");
    if (is_value && ((names_secret(option) && !is_plain(word)) || (may_name_key(option) && is_hex_key(word)))) {
      masked.emplace_back(kMasked);
    } else {
      masked.push_back(mask_secrets(std::string_view(word)));
    }
    option = word.starts_with("-") && word.find('=') == std::string::npos ? std::string_view(word) : std::string_view();
  }
  // `wandb login KEY`
  for (std::size_t i = 1; i + 1 < masked.size(); ++i) {
    if (masked[i] == "login" && is_hex_key(masked[i + 1])) {
      masked[i + 1] = kMasked;
    }
  }
  return masked;
}

}  // namespace unidle
