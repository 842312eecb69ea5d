#include "unidle/report/page/code.h"

#include "unidle/knobs/changed_lines.h"

namespace unidle::report {

Html patch_html(std::string_view patch) {
  Html lines;
  while (!patch.empty()) {
    const std::size_t end = patch.find('\n');
    const std::string_view line = patch.substr(0, end);
    patch.remove_prefix(end == std::string_view::npos ? patch.size() : end + 1);
    const bool header = line.starts_with("---") || line.starts_with("+++") || line.starts_with("@@");
    const std::string_view tag = header ? "i" : line.starts_with('+') ? "ins" : line.starts_with('-') ? "del" : "span";
    lines += element(tag, line.empty() ? " " : knobs::excerpt(line, "")) + Html{"\n"};
  }
  return element("pre.diff", element("code", lines));
}

Html lines_change_html(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  Html lines;
  const auto shown = [](const std::vector<std::string>& of, const std::vector<std::string>& others, std::size_t i) {
    return knobs::excerpt(of[i], i < others.size() ? others[i] : "");
  };
  for (std::size_t i = 0; i < before.size(); ++i) {
    lines += element("del", "- " + shown(before, after, i)) + Html{"\n"};
  }
  for (std::size_t i = 0; i < after.size(); ++i) {
    lines += element("ins", "+ " + shown(after, before, i)) + Html{"\n"};
  }
  return element("pre.diff", element("code", lines));
}

Html code_html(const std::vector<std::string>& lines) {
  Html code;
  for (const std::string& line : lines) {
    code += element("span", knobs::excerpt(line, "")) + Html{"\n"};
  }
  return lines.empty() ? code : element("pre.diff", element("code", code));
}

Html place_html(const std::string& place) {
  return place.empty() ? Html() : element("p.place", element("code", place));
}

Html command_to_copy(const std::string& command) { return element("pre.command", element("code", command)); }

}  // namespace unidle::report
