// How the parts of a diagnosis are written for a terminal.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "unidle/base/layout.h"
#include "unidle/base/terminal.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/language/language.h"

namespace unidle::diagnose::detail {

constexpr int kNarrowest = 40;  // columns

struct Style {
  int width;
  bool colour;
  Language language;
  bool verbose = false;

  template <typename... Args>
  std::string say(fmt::format_string<Args...> english, Args&&... args) const {
    return unidle::translate(language, english, std::forward<Args>(args)...);
  }
  std::string word(std::string_view english) const { return std::string(translate(language, english)); }
  std::string paint(const char* code, const std::string& text) const {
    const bool ends_line = !text.empty() && text.back() == '\n';
    const std::string inside = text.substr(0, text.size() - (ends_line ? 1 : 0));
    return colour ? painted(inside, code) + (ends_line ? "\n" : "") : text;
  }
  std::string block(int indent, std::string_view mark, std::string_view text) const {
    return unidle::block(text, std::max(width, kNarrowest), indent, mark);
  }
  std::string command(int indent, std::string_view mark, std::string_view text) const {
    return unidle::command_block(text, std::max(width, kNarrowest), indent, mark);
  }
};

/// The rules that found no cause, those that lacked a signal, and how to measure it: counted, or listed if verbose.
std::string other_checks_text(const Diagnosis& diagnosis, const Style& style);

}  // namespace unidle::diagnose::detail
