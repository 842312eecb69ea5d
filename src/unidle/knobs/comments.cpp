#include "unidle/knobs/comments.h"

#include <algorithm>
#include <array>

#include "unidle/base/characters.h"
#include "unidle/base/substrings.h"
#include "unidle/knobs/detail/scan.h"

namespace unidle::knobs {

namespace {

/// The mark of a comment at the front of `rest`; empty if there is none.
std::string_view mark_at(Format format, std::string_view rest) {
  static constexpr std::array<std::string_view, 2> kSlashes = {"//", "/*"};
  if (format == Format::kJson) {
    const auto found =
        std::find_if(kSlashes.begin(), kSlashes.end(), [&](std::string_view mark) { return rest.starts_with(mark); });
    return found == kSlashes.end() ? std::string_view() : *found;
  }
  return rest.starts_with('#') ? "#" : std::string_view();
}

std::string_view without_marks(Format format, std::string_view comment) {
  for (std::string_view mark = mark_at(format, comment); !mark.empty(); mark = mark_at(format, comment)) {
    comment.remove_prefix(mark.size());
  }
  comment = trimmed(comment);
  if (format == Format::kJson && comment.ends_with("*/")) {
    comment.remove_suffix(2);
  }
  return trimmed(comment);
}

/// From the end of a value to the end of its line, skipping quoted values that follow.
std::string_view behind(const ConfigFile& file, const Scalar& scalar) {
  const std::string_view text = file.text();
  const std::size_t end = detail::line_end(text, scalar.end);
  for (std::size_t i = scalar.end; i < end; ++i) {
    const char c = text[i];
    const bool apart = i == scalar.end || is_blank(text[i - 1]) || text[i - 1] == ',' || text[i - 1] == ')';
    if ((c == '"' || c == '\'') && apart) {
      i = std::min(detail::end_of_quoted(text, i), end) - 1;
    } else if (const auto mark = mark_at(file.format(), text.substr(i, 2)); apart && !mark.empty()) {
      return without_marks(file.format(), text.substr(i, end - i));
    }
  }
  return {};
}

/// The comment on a line of its own, indented like the value's line; a comment of a list above it is about something
/// else.
std::optional<std::string_view> comment_line(const ConfigFile& file, std::size_t begin, std::size_t indent) {
  const std::string_view text = file.text();
  const std::string_view line = text.substr(begin, detail::line_end(text, begin) - begin);
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos || first != indent || mark_at(file.format(), line.substr(first)).empty()) {
    return std::nullopt;
  }
  return without_marks(file.format(), line.substr(first));
}

std::string above(const ConfigFile& file, const Scalar& scalar) {
  const std::string_view text = file.text();
  std::size_t begin = detail::line_begin(text, scalar.begin);
  const std::size_t first = text.find_first_not_of(" \t", begin);
  const std::size_t indent = first == std::string_view::npos ? 0 : first - begin;
  std::string comment;
  while (begin > 0) {
    begin = detail::line_begin(text, begin - 1);
    const auto line = comment_line(file, begin, indent);
    if (!line) {
      break;
    }
    comment = std::string(*line) + (comment.empty() ? "" : " ") + comment;
  }
  return comment;
}

bool is_word_letter(char c) { return is_lower(c) || is_digit(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80; }

/// Whether `text` has `word` as a whole word.
bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word_letter(text[at - 1])) && (end == text.size() || !is_word_letter(text[end]))) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string comment_of(const ConfigFile& file, const Scalar& scalar) {
  std::string comment = above(file, scalar);
  const std::string_view beside = behind(file, scalar);
  return comment + (comment.empty() || beside.empty() ? "" : " ") + std::string(beside);
}

bool gives_reason(std::string_view comment, std::string_view value) {
  static constexpr std::string_view kWords[] = {
      "only",      "must",        "never",         "because",      "since",
      "avoid",     "avoids",      "prevent",       "prevents",     "otherwise",
      "due to",    "so that",     "workaround",    "hack",         "bug",
      "bugs",      "buggy",       "issue",         "issues",       "break",
      "breaks",    "broken",      "fail",          "fails",        "crash",
      "crashes",   "error",       "errors",        "hang",         "hangs",
      "deadlock",  "deadlocks",   "leak",          "leaks",        "segfault",
      "oom",       "nan",         "nans",          "unstable",     "diverge",
      "diverges",  "overflow",    "underflow",     "debug",        "debugger",
      "debuggers", "debugging",   "deterministic", "reproducible", "reproducibility",
      "require",   "requires",    "required",      "need",         "needs",
      "needed",    "unsupported", "incompatible",  "problem",      "problems",
      "keep",      "leave",       "dont",          "instead",      "too",
      "windows",   "work",        "works",         "worked",       "cause",
      "causes",    "instability", "minimum",       "maximum",      "at least",
      "at most",   "divisible",   "safest",        "safer",        "limited",
      "can run",   "for now"};
  static constexpr std::string_view kPhrases[] = {
      "n't",          "n\u2019t",     "do not",       "does not",           "cannot",       "can not",
      "not support",  "not work",     "must not",     "\u5fc5\u987b",       "\u4e0d\u8981", "\u4e0d\u80fd",
      "\u5426\u5219", "\u907f\u514d", "\u56e0\u4e3a", "\u4e0d\u652f\u6301", "\u62a5\u9519"};
  const std::string text = lower(comment);
  return (!value.empty() && has_word(text, "use " + lower(value))) ||
         std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return has_word(text, word); }) ||
         contains_any(text, kPhrases);
}

std::optional<Decision> decision_on(const ConfigFile& file, const Recognition& recognition, std::string_view knob) {
  for (const Recognized& setting : recognition.knobs) {
    if (setting.knob != knob || setting.phase != Phase::kTraining) {
      continue;
    }
    for (const std::string& path : {setting.path, setting.literal}) {
      const Scalar* scalar = path.empty() ? nullptr : file.find(path);
      std::string comment = scalar == nullptr ? std::string() : comment_of(file, *scalar);
      if (scalar != nullptr && gives_reason(comment, scalar->value)) {
        return Decision{scalar->path, scalar->line, std::move(comment)};
      }
    }
  }
  return std::nullopt;
}

}  // namespace unidle::knobs
