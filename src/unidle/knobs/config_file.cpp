#include "unidle/knobs/config_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/knobs/detail/links.h"
#include "unidle/knobs/detail/syntax.h"

namespace unidle::knobs {

namespace {

bool same_values(const std::vector<Scalar>& before, const std::vector<Scalar>& after,
                 const std::function<bool(const Scalar&)>& is_edited, std::string_view value) {
  return std::equal(before.begin(), before.end(), after.begin(), after.end(), [&](const Scalar& a, const Scalar& b) {
    return a.path == b.path && (is_edited(a) ? b.value == value : b.value == a.value && b.quoted == a.quoted);
  });
}

/// `after` without the new scalar must be `before`, without an empty parent that became a mapping.
bool same_but_new(std::vector<Scalar> before, std::vector<Scalar> after, std::string_view path,
                  std::string_view value) {
  std::erase_if(before, [&](const Scalar& scalar) {
    return path.size() > scalar.path.size() && path.starts_with(scalar.path) && path[scalar.path.size()] == '.';
  });
  // A file of nothing but comments has one empty scalar without a path.
  std::erase_if(before, [](const Scalar& scalar) { return scalar.path.empty() && scalar.value.empty(); });
  const auto is_new = [&](const Scalar& scalar) { return scalar.path == path && scalar.value == value; };
  return std::erase_if(after, is_new) == 1 && same_values(before, after, [](const Scalar&) { return false; }, {});
}

}  // namespace

Format format_of(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".json" || extension == ".jsonc") {
    return Format::kJson;
  }
  if (extension == ".toml") {
    return Format::kToml;
  }
  if (extension == ".ini" || extension == ".cfg") {
    return Format::kIni;
  }
  return extension == ".py" ? Format::kPython : Format::kYaml;
}

ConfigFile ConfigFile::load(const std::filesystem::path& path) { return from_text(read_file(path), path.string()); }

ConfigFile ConfigFile::from_text(std::string text, std::string name) {
  ConfigFile file;
  file.name_ = std::move(name);
  file.format_ = format_of(file.name_);
  file.scalars_ = detail::syntax_of(file.format_).scalars(text, file.name_);
  file.text_ = std::move(text);
  return file;
}

const Scalar* ConfigFile::find(std::string_view path) const {
  const auto found =
      std::find_if(scalars_.rbegin(), scalars_.rend(), [&](const Scalar& scalar) { return scalar.path == path; });
  return found == scalars_.rend() ? nullptr : &*found;
}

void ConfigFile::refuse_repeated(std::string_view path) const {
  const auto has_path = [&](const Scalar& scalar) { return scalar.path == path; };
  if (std::count_if(scalars_.begin(), scalars_.end(), has_path) > 1) {
    const auto first = std::find_if(scalars_.begin(), scalars_.end(), has_path);
    throw Error(ErrorCode::kInput, fmt::format("{}:{}: {}", name_, find(path)->line, path),
                fmt::format("is set twice, first in line {}", first->line), "remove one of them");
  }
}

void ConfigFile::set(std::string_view path, std::string_view value) {
  refuse_repeated(path);
  if (const Scalar* scalar = find(path)) {
    replace(Scalar(*scalar), value);
  } else {
    insert(path, value);
  }
}

void ConfigFile::set_alone(std::string_view path, std::string_view value) {
  refuse_repeated(path);
  const Scalar* found = find(path);
  if (found == nullptr) {
    insert(path, value);
    return;
  }
  const Scalar scalar = *found;
  if (scalar.value == value) {
    return;
  }
  if (const auto readers = detail::readers_of(*this, scalar); !readers.empty() && !scalar.is_alias()) {
    throw Error(ErrorCode::kInput, fmt::format("{}:{}: {}", name_, scalar.line, path),
                fmt::format("{} in line {} takes its value from here", readers.front().path, readers.front().line),
                "give each key a value of its own");
  }
  if (scalar.is_alias()) {
    replace_alias(scalar, value);
  } else {
    replace(scalar, value);
  }
}

void ConfigFile::replace_alias(const Scalar& scalar, std::string_view value) {
  const std::string source = detail::syntax_of(format_).replacement(text_, scalar, value);
  std::string text = text_;
  text.replace(scalar.alias_begin, scalar.alias_end - scalar.alias_begin, source);
  accept(std::move(text), [&](const Scalar& other) { return other.path == scalar.path; }, scalar.path, value);
}

void ConfigFile::replace(const Scalar& scalar, std::string_view value) {
  if (!scalar.editable) {
    throw Error(ErrorCode::kInput, fmt::format("{}:{}: {}", name_, scalar.line, scalar.path),
                "is written over several lines and cannot be edited", "write it on one line");
  }
  if (scalar.value == value) {
    return;
  }
  const std::string source = detail::syntax_of(format_).replacement(text_, scalar, value);
  std::string text = text_;
  text.replace(scalar.begin, scalar.end - scalar.begin, source);
  accept(std::move(text), [&](const Scalar& other) { return other.begin == scalar.begin; }, scalar.path, value);
}

void ConfigFile::insert(std::string_view path, std::string_view value) {
  if (path.empty() || path.starts_with('.') || path.ends_with('.') || path.ends_with(']') ||
      path.find("..") != std::string_view::npos) {
    throw Error(ErrorCode::kInput, fmt::format("{}: {}", name_, path), "is not a key that can be added",
                "write keys as group.name");
  }
  accept(detail::syntax_of(format_).inserted(text_, name_, path, value), nullptr, path, value);
}

void ConfigFile::accept(std::string text, const std::function<bool(const Scalar&)>& is_edited, std::string_view path,
                        std::string_view value) {
  std::vector<Scalar> after;
  try {
    after = detail::syntax_of(format_).scalars(text, name_);
  } catch (const Error& failure) {
    throw Error(ErrorCode::kInternal, fmt::format("{}: {}", name_, path),
                "the edit would have broken the file and was undone: " + failure.message());
  }
  const bool same =
      is_edited ? same_values(scalars_, after, is_edited, value) : same_but_new(scalars_, after, path, value);
  if (!same) {
    throw Error(ErrorCode::kInternal, fmt::format("{}: {}", name_, path),
                "the edit would have changed other values and was undone");
  }
  text_ = std::move(text);
  scalars_ = std::move(after);
}

}  // namespace unidle::knobs
