#include "unidle/diagnose/configured/changed_names.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/knobs/python_tokens.h"

namespace unidle::diagnose {

namespace {

using knobs::PythonToken;
using Kind = PythonToken::Kind;

class Changes {
 public:
  Changes(const std::string& text, std::string_view name)
      : text_(text), name_(name), tokens_(knobs::tokenize_python(text, "script")) {}

  bool found() {
    for (std::size_t begin = 0; begin < tokens_.size();) {
      std::size_t end = begin;
      while (end < tokens_.size() && tokens_[end].kind != Kind::kNewline) {
        ++end;
      }
      statement(begin, end);
      begin = end + 1;
    }
    return made_of_itself_ || assigned_ > 1;
  }

 private:
  struct Scope {
    std::size_t indent = 0;  // of the line that opens it
    bool global = false;     // declared global in the function
  };

  std::string_view at(std::size_t i) const {
    return i < tokens_.size() ? std::string_view(text_).substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin)
                              : std::string_view();
  }
  bool is_name(std::size_t i) const {
    return tokens_[i].kind == Kind::kName && at(i) == name_ && (i == 0 || at(i - 1) != ".");
  }
  /// Two characters of one operator.
  bool touch(std::size_t i) const { return i + 1 < tokens_.size() && tokens_[i].end == tokens_[i + 1].begin; }

  bool names_it(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (is_name(i)) {
        return true;
      }
    }
    return false;
  }

  void statement(std::size_t begin, std::size_t end) {
    if (begin >= end) {
      return;
    }
    while (!scopes_.empty() && tokens_[begin].indent <= scopes_.back().indent) {
      scopes_.pop_back();
    }
    const std::size_t word = at(begin) == "async" ? begin + 1 : begin;
    if (at(word) == "def" || at(word) == "class") {
      scopes_.push_back({tokens_[begin].indent});
    } else if (at(begin) == "global" && !scopes_.empty()) {
      scopes_.back().global = scopes_.back().global || names_it(begin, end);
    } else {
      assignments(begin, end);
    }
  }

  /// An augmented assignment (+=, //=, ...) after the name at `i`, or a walrus.
  bool is_augmented(std::size_t i) const {
    constexpr std::string_view kSigns = "+-*/%&|^@:";
    std::size_t sign = i + 1;
    if (at(sign).size() != 1 || kSigns.find(at(sign)[0]) == std::string_view::npos) {
      return false;
    }
    sign += at(sign + 1) == at(sign) && touch(sign);  // // and **
    return at(sign + 1) == "=" && touch(sign);
  }

  /// A plain "=".
  bool is_assignment(std::size_t i) const {
    constexpr std::string_view kParts = "=!<>:+-*/%&|^@";
    const bool ends_another = i > 0 && touch(i - 1) && at(i - 1).find_first_of(kParts) != std::string_view::npos;
    return at(i) == "=" && !ends_another && !(touch(i) && at(i + 1) == "=");
  }

  void assignments(std::size_t begin, std::size_t end) {
    std::size_t targets_end = begin;  // behind the last target
    int depth = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const std::string_view token = at(i);
      depth += token == "(" || token == "[" || token == "{";
      depth -= token == ")" || token == "]" || token == "}";
      made_of_itself_ = made_of_itself_ || (is_name(i) && is_augmented(i));
      if (depth == 0 && is_assignment(i)) {
        targets_end = i;
      }
      if (depth == 0 && (token == "for" || token == "as")) {
        loop_or_alias(i, end);
      }
    }
    if (is_target(begin, targets_end)) {
      made_of_itself_ = made_of_itself_ || names_it(targets_end, end);
      assigned_ += of_module();
    }
  }

  /// The name itself, not an entry or attribute of it, and not inside a call or an index.
  bool is_target(std::size_t begin, std::size_t end) const {
    constexpr std::string_view kBehind = ".[(";
    for (std::size_t i = begin; i < end; ++i) {
      const bool whole = at(i + 1).size() != 1 || kBehind.find(at(i + 1)) == kBehind.npos;
      if (is_name(i) && whole && begins_target(begin, i)) {
        return true;
      }
    }
    return false;
  }

  bool begins_target(std::size_t begin, std::size_t i) const {
    constexpr std::string_view kBefore = ",=:;";
    const bool first = i == begin || (i == begin + 1 && (at(begin) == "(" || at(begin) == "["));
    return first || (at(i - 1).size() == 1 && kBefore.find(at(i - 1)) != kBefore.npos);
  }

  void loop_or_alias(std::size_t i, std::size_t end) {
    std::size_t last = i + 1;
    while (at(i) == "for" && last < end && at(last) != "in") {
      ++last;
    }
    assigned_ += of_module() && names_it(i + 1, std::max(last, i + 2));
  }

  bool of_module() const { return scopes_.empty() || scopes_.back().global; }

  const std::string& text_;
  std::string_view name_;
  std::vector<PythonToken> tokens_;
  std::vector<Scope> scopes_;
  int assigned_ = 0;
  bool made_of_itself_ = false;
};

}  // namespace

bool is_changed(const std::string& text, std::string_view name) {
  try {
    return Changes(text, name).found();
  } catch (const Error&) {
    return false;  // not Python, so it has no constants
  }
}

}  // namespace unidle::diagnose
