#include "unidle/knobs/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/knobs/detail/links.h"
#include "unidle/knobs/detail/syntax.h"

namespace unidle::knobs {

namespace {

constexpr std::uintmax_t kLargest_bytes = 16 << 20;

/// Removes a new scalar at `path` from `after`, and from `before` an empty parent that became a mapping (and is no
/// longer a scalar); false when the new scalar is missing.
bool leave_out_new(std::vector<Scalar>& before, std::vector<Scalar>& after, std::string_view path,
                   std::string_view value) {
  const auto is_parent = [&](const Scalar& scalar) {
    return path.size() > scalar.path.size() && path.starts_with(scalar.path) && path[scalar.path.size()] == '.';
  };
  if (std::none_of(after.begin(), after.end(), is_parent)) {
    std::erase_if(before, is_parent);
  }
  // A file with only comments has one empty scalar without a path.
  std::erase_if(before, [](const Scalar& scalar) { return scalar.path.empty() && scalar.value.empty(); });
  return std::erase_if(after, [&](const Scalar& scalar) { return scalar.path == path && scalar.value == value; }) == 1;
}

/// Brackets in a path are list indices: a[0].b
bool has_odd_bracket(std::string_view path) {
  for (std::size_t at = path.find_first_of("[]"); at != std::string_view::npos; at = path.find_first_of("[]", at)) {
    const std::size_t close = path.find_first_not_of("0123456789", at + 1);
    if (path[at] != '[' || close == at + 1 || close >= path.size() || path[close] != ']') {
      return true;
    }
    at = close + 1;
  }
  return false;
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
  struct Other {
    std::string_view extension;
    const char* what;
  };
  static constexpr std::array kOthers = {
      Other{".ini", "is an INI file, which is not read"},       Other{".cfg", "is an INI file, which is not read"},
      Other{".sh", "is a shell script, which is not read"},     Other{".slurm", "is a shell script, which is not read"},
      Other{".sbatch", "is a shell script, which is not read"}, Other{".ipynb", "is a notebook, which is not read"},
  };
  for (const Other& other : kOthers) {
    if (extension == other.extension) {
      throw Error(ErrorCode::kInput, path.string(), other.what, "YAML, JSON, TOML and Python files are");
    }
  }
  return extension == ".py" ? Format::kPython : Format::kYaml;
}

ConfigFile ConfigFile::load(const std::filesystem::path& path) {
  std::error_code unknown;
  if (const auto bytes = std::filesystem::file_size(path, unknown); !unknown && bytes > kLargest_bytes) {
    throw Error(ErrorCode::kInput, path.string(), "is too large for a configuration", "at most 16 MiB were expected");
  }
  return from_text(read_file(path), path.string());
}

ConfigFile ConfigFile::from_text(std::string text, std::string name) {
  ConfigFile file;
  file.name_ = std::move(name);
  file.format_ = format_of(file.name_);
  std::vector<Scalar> scalars = detail::syntax_of(file.format_).scalars(text, file.name_);
  file.take(std::move(text), std::move(scalars));
  return file;
}

void ConfigFile::take(std::string text, std::vector<Scalar> scalars) {
  text_ = std::move(text);
  scalars_ = std::move(scalars);
  places_.clear();
  for (std::size_t i = 0; i < scalars_.size(); ++i) {
    places_.try_emplace(scalars_[i].path, Place{i, i}).first->second.last = i;
  }
}

const Scalar* ConfigFile::find(std::string_view path) const {
  const auto found = places_.find(path);
  return found == places_.end() ? nullptr : &scalars_[found->second.last];
}

const Scalar& ConfigFile::the_only(std::string_view path) const {
  const auto found = places_.find(path);
  if (found == places_.end()) {
    throw Error(ErrorCode::kInternal, fmt::format("{}: {}", name_, path), "is not there to be changed");
  }
  const auto& [first, last] = found->second;
  if (first != last) {
    throw Error(ErrorCode::kInput, fmt::format("{}:{}: {}", name_, scalars_[last].line, path),
                fmt::format("is set twice, first in line {}", scalars_[first].line), "remove one of them");
  }
  return scalars_[first];
}

bool ConfigFile::same_values(const std::vector<Scalar>& before, const std::vector<Scalar>& after,
                             const Edited& edited) {
  return std::equal(before.begin(), before.end(), after.begin(), after.end(), [&](const Scalar& a, const Scalar& b) {
    const std::string* now = edited ? edited(a) : nullptr;
    return a.path == b.path && (now != nullptr ? b.value == *now : b.value == a.value && b.quoted == a.quoted);
  });
}

void ConfigFile::set(std::string_view path, std::string_view value) {
  if (places_.contains(path)) {
    change({{std::string(path), std::string(value)}});
  } else {
    insert(path, value);
  }
}

void ConfigFile::set_alone(std::string_view path, std::string_view value) {
  if (!places_.contains(path)) {
    insert(path, value);
    return;
  }
  const Scalar scalar = the_only(path);
  if (scalar.value == value) {
    return;
  }
  if (const auto readers = detail::Readers(*this).of(scalar); !readers.empty() && !scalar.is_alias()) {
    throw Error(ErrorCode::kInput, fmt::format("{}:{}: {}", name_, scalar.line, path),
                fmt::format("{} in line {} takes its value from here", readers.front().path, readers.front().line),
                "give each key a value of its own");
  }
  if (scalar.is_alias()) {
    replace_alias(scalar, std::string(value));
  } else {
    set(path, value);
  }
}

void ConfigFile::replace_alias(const Scalar& scalar, const std::string& value) {
  const std::string source = detail::syntax_of(format_).replacement(text_, scalar, value);
  std::string text = text_;
  text.replace(scalar.alias_begin, scalar.alias_end - scalar.alias_begin, source);
  const auto edited = [&](const Scalar& other) { return other.path == scalar.path ? &value : nullptr; };
  accept(std::move(text), edited, scalar.path, value);
}

void ConfigFile::change(const std::vector<NewValue>& values) {
  std::map<std::size_t, std::string> wanted_at;  // by the literal's first byte
  std::map<std::size_t, const Scalar*> places;
  for (const NewValue& wanted : values) {
    const Scalar& scalar = the_only(wanted.path);
    if (!scalar.editable) {
      throw Error(ErrorCode::kInput, fmt::format("{}:{}: {}", name_, scalar.line, scalar.path),
                  "is written over several lines and cannot be edited", "write it on one line");
    }
    if (scalar.value == wanted.value) {
      continue;
    }
    const auto [known, added] = wanted_at.try_emplace(scalar.begin, wanted.value);
    if (!added && known->second != wanted.value) {
      throw Error(ErrorCode::kInput, fmt::format("{}:{}: {}", name_, scalar.line, scalar.path),
                  "shares its value with another key that is to have another one", "write both out");
    }
    places[scalar.begin] = &scalar;
  }
  if (places.empty()) {
    return;
  }
  std::string text;
  std::size_t copied = 0;
  for (const auto& [begin, scalar] : places) {
    const std::size_t from = format_ == Format::kYaml ? detail::begin_of_reference(text_, begin) : begin;
    text.append(text_, copied, from - copied);
    text += detail::syntax_of(format_).replacement(text_, *scalar, wanted_at[begin]);
    copied = scalar->end;
  }
  text.append(text_, copied);
  const auto edited = [&](const Scalar& other) {
    const auto found = wanted_at.find(other.begin);
    return found == wanted_at.end() ? nullptr : &found->second;
  };
  accept(std::move(text), edited, values.front().path, values.front().value);
}

void ConfigFile::insert(std::string_view path, std::string_view value) {
  if (path.empty() || path.starts_with('.') || path.ends_with('.') || path.ends_with(']') ||
      path.find("..") != std::string_view::npos || has_odd_bracket(path)) {
    throw Error(ErrorCode::kInput, fmt::format("{}: {}", name_, path), "is not a key that can be added",
                "write keys as group.name");
  }
  accept(detail::syntax_of(format_).inserted(text_, name_, path, value), nullptr, path, value);
}

void ConfigFile::accept(std::string text, const Edited& edited, std::string_view path, std::string_view value) {
  std::vector<Scalar> after;
  try {
    after = detail::syntax_of(format_).scalars(text, name_);
  } catch (const Error& failure) {
    throw Error(ErrorCode::kInternal, fmt::format("{}: {}", name_, path),
                "the edit would have broken the file and was undone: " + failure.message());
  }
  bool same = false;
  if (edited) {
    same = same_values(scalars_, after, edited);
  } else {
    std::vector<Scalar> old = scalars_;
    std::vector<Scalar> rest = after;
    same = leave_out_new(old, rest, path, value) && same_values(old, rest, nullptr);
  }
  if (!same) {
    throw Error(ErrorCode::kInternal, fmt::format("{}: {}", name_, path),
                "the edit would have changed other values and was undone");
  }
  take(std::move(text), std::move(after));
}

}  // namespace unidle::knobs
