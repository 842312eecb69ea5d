#include "unidle/language/po.h"

#include <fmt/format.h>

#include "unidle/base/error.h"

namespace unidle {

namespace {

class Reader {
 public:
  Reader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Catalogue read() {
    while (!text_.empty()) {
      ++line_;
      const std::size_t end = text_.find('\n');
      take(text_.substr(0, end));
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
    }
    finish();
    return std::move(catalogue_);
  }

 private:
  enum class Part { kNone, kMessage, kTranslation };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInput, fmt::format("{}:{}", name_, line_), what, "msgfmt --check says more");
  }

  void take(std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      return;
    }
    if (line.starts_with('#')) {
      if (part_ == Part::kTranslation) {
        finish();
      }
      if (line.starts_with("#~")) {
        fuzzy_ = false;  // that was a flag of this obsolete entry
      }
      fuzzy_ = fuzzy_ || (line.starts_with("#,") && line.find("fuzzy") != std::string_view::npos);
    } else if (line.starts_with("msgid ")) {
      finish();
      part_ = Part::kMessage;
      message_ = quoted(line.substr(6));
    } else if (line.starts_with("msgstr ") && part_ == Part::kMessage) {
      part_ = Part::kTranslation;
      translation_ = quoted(line.substr(7));
    } else if (line.starts_with('"') && part_ != Part::kNone) {
      (part_ == Part::kMessage ? message_ : translation_) += quoted(line);
    } else {
      fail("expected msgid, msgstr or a quoted text");
    }
  }

  std::string quoted(std::string_view text) const {
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') {
      fail("expected a text between double quotes");
    }
    text = text.substr(1, text.size() - 2);
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        out += text[i];
        continue;
      }
      const char escaped = ++i < text.size() ? text[i] : '\0';
      switch (escaped) {
        case 'n': out += '\n'; break;
        case 't': out += '\t'; break;
        case '"':
        case '\\': out += escaped; break;
        default: fail("unknown escape sequence");
      }
    }
    return out;
  }

  /// Adds the current entry to the catalogue; the entry with the empty message is the file's header.
  void finish() {
    if (part_ == Part::kMessage) {
      fail("a msgid has no msgstr");
    }
    if (part_ == Part::kTranslation) {
      if (!message_.empty() && !translation_.empty() && !fuzzy_) {
        catalogue_.emplace_back(std::move(message_), std::move(translation_));
      }
      fuzzy_ = false;
    }
    part_ = Part::kNone;
    message_.clear();
    translation_.clear();
  }

  std::string_view text_;
  std::string_view name_;
  int line_ = 0;
  Part part_ = Part::kNone;
  bool fuzzy_ = false;
  std::string message_;
  std::string translation_;
  Catalogue catalogue_;
};

}  // namespace

Catalogue read_po(std::string_view text, std::string_view name) { return Reader(text, name).read(); }

}  // namespace unidle
