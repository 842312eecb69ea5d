// Fits --help into the terminal, for both programs.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

#include "unidle/base/layout.h"
#include "unidle/base/split.h"

namespace unidle::cli {

/// Descriptions are wrapped at `width` columns beside the names. Lines that begin with a blank (examples) stay whole.
class HelpFormat : public CLI::Formatter {
 public:
  explicit HelpFormat(int width) : width_(std::max(width, kNarrowest)), column_(std::min(kColumn, width_ * 3 / 8)) {}

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return row(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option));
  }
  /// "[record...]" for any number above one; CLI11 would print "[record(0x)]" for at most two.
  std::string make_option_usage(const CLI::Option* option) const override {
    const std::string name = make_option_name(option, true) + (option->get_expected_max() > 1 ? "..." : "");
    return option->get_required() ? name : "[" + name + "]";
  }
  std::string make_subcommand(const CLI::App* sub) const override {
    return row(sub->get_display_name(true), sub->get_description());
  }
  std::string make_description(const CLI::App* app) const override { return wrapped(Formatter::make_description(app)); }
  std::string make_footer(const CLI::App* app) const override { return wrapped(Formatter::make_footer(app)); }

 private:
  static constexpr int kNarrowest = 40;
  static constexpr int kColumn = 30;

  std::string row(const std::string& names, const std::string& description) const {
    std::string left = block(names, width_, 2, "");
    if (description.empty()) {
      return left;
    }
    const std::string right = block(description, width_, column_, "");
    const std::size_t length = left.size() - 1;  // without the line break
    const bool beside = length + 2 <= static_cast<std::size_t>(column_) && left.find('\n') == length;
    return beside ? left.substr(0, length) + right.substr(length) : left + right;
  }

  std::string wrapped(const std::string& text) const {
    std::string out;
    for (const std::string_view line : split(text, '\n')) {
      out += line.empty() || line.front() == ' ' ? std::string(line) + "\n" : block(line, width_, 0, "");
    }
    return out.empty() ? out : out.substr(0, out.size() - 1);
  }

  int width_;
  int column_;
};

}  // namespace unidle::cli
