#include "unidle/diagnose/in_program/padding_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "unidle/base/substrings.h"
#include "unidle/diagnose/configured/configured_files.h"

namespace unidle::diagnose {

namespace {

bool pads(std::string_view line) {
  constexpr std::array<std::string_view, 3> kArguments = {"padding=\"max_length\"", "padding='max_length'",
                                                          "pad_to_max_length=True"};
  std::string code(line.substr(0, line.find('#')));
  std::erase_if(code, [](unsigned char c) { return std::isspace(c) != 0; });
  return contains_any(code, kArguments);
}

}  // namespace

std::optional<std::string> line_that_pads(const Signals& signals, Sources& sources) {
  std::optional<std::string> found;
  for (const std::filesystem::path& path : configured_files(signals.command, sources.folder()).scripts) {
    const std::string file = sources.name_of(path);
    const std::optional<std::string>& text = sources.text(file);
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    for (int line = 1; !rest.empty(); ++line) {
      const std::size_t length = std::min(rest.find('\n'), rest.size() - 1) + 1;
      if (pads(rest.substr(0, length))) {
        if (found) {
          return std::nullopt;
        }
        found = fmt::format("{}:{}", file, line);
      }
      rest.remove_prefix(length);
    }
  }
  return found;
}

}  // namespace unidle::diagnose
