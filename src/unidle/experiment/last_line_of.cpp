#include "unidle/experiment/last_line_of.h"

#include "unidle/base/secrets.h"

namespace unidle::experiment {

namespace {

bool has_text(std::string_view line) { return line.find_first_not_of(" \t") != std::string_view::npos; }

}  // namespace

std::string_view last_line(std::string_view text, bool (*accept)(std::string_view)) {
  while (!text.empty()) {
    const std::size_t newline = text.find_last_of("\r\n");
    const std::string_view line = newline == std::string_view::npos ? text : text.substr(newline + 1);
    if (accept(line)) {
      return line;
    }
    text = newline == std::string_view::npos ? std::string_view() : text.substr(0, newline);
  }
  return {};
}

std::string last_line_of(std::string_view err, std::string_view out) {
  std::string_view line = last_line(err, has_text);
  line = line.empty() ? last_line(out, has_text) : line;
  return line.empty() ? "the program failed without a word" : mask_secrets(line);
}

}  // namespace unidle::experiment
