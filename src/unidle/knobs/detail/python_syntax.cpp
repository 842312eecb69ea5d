#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/error.h"
#include "unidle/knobs/detail/emit.h"
#include "unidle/knobs/detail/insert.h"
#include "unidle/knobs/detail/python_reader.h"
#include "unidle/knobs/detail/scan.h"
#include "unidle/knobs/detail/syntax.h"

namespace unidle::knobs::detail {

namespace {

bool is_literal(std::string_view value) {
  return value == "True" || value == "False" || value == "None" ||
         (is_json_literal(value) && value != "true" && value != "false" && value != "null");
}

std::string written_python(std::string_view value, char quote) {
  if (quote != '\'' || has_control(value)) {
    return written(value, '"', true);
  }
  std::string text = "'";
  for (const char c : value) {
    text += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  }
  return text + "'";
}

std::string entry_of(const PythonGroup& group, const std::string& key, const std::string& source) {
  return group.call ? fmt::format("{}={}", key, source)
                    : fmt::format("{}{}{}: {}", group.quote, key, group.quote, source);
}

}  // namespace

std::vector<Scalar> python_scalars(const std::string& text, const std::string& name) {
  std::vector<Scalar> scalars = read_python(text, name).scalars;
  std::stable_sort(scalars.begin(), scalars.end(), [](const Scalar& a, const Scalar& b) { return a.begin < b.begin; });
  return scalars;
}

std::string python_replacement(const std::string& text, const Scalar& old, std::string_view value) {
  if (is_literal(value) && !keeps_quotes(old, true)) {
    return std::string(value);
  }
  return written_python(value, old.quoted ? text[old.end - 1] : '"');
}

std::string python_inserted(const std::string& text, const std::string& name, std::string_view path,
                            std::string_view value) {
  const PythonFile file = read_python(text, name);
  const std::string source = is_literal(value) ? std::string(value) : written_python(value, '"');
  const std::size_t dot = path.rfind('.');
  const std::string parent(dot == std::string_view::npos ? "" : path.substr(0, dot));
  const std::string key(dot == std::string_view::npos ? path : path.substr(dot + 1));
  std::string result = text;
  if (parent.empty()) {
    if (file.last_assignment_end == 0) {
      throw Error(ErrorCode::kInput, fmt::format("{}: {}", name, path), "the file has no constants to add it to");
    }
    const std::size_t end = line_end(text, file.last_assignment_end);
    return result.insert(end, line_end_of(text) + fmt::format("{} = {}", key, source));
  }
  const auto group = std::find_if(file.groups.rbegin(), file.groups.rend(),
                                  [&](const PythonGroup& candidate) { return candidate.path == parent; });
  if (group == file.groups.rend()) {
    throw Error(ErrorCode::kInput, fmt::format("{}: {}", name, path), "cannot be added: its parent is not there");
  }
  const std::string entry = entry_of(*group, key, source);
  if (group->last_begin == 0) {
    return result.insert(group->open + 1, entry);
  }
  return added_to_flow(text, {group->open, group->last_begin, group->content_end, group->close}, entry);
}

}  // namespace unidle::knobs::detail
