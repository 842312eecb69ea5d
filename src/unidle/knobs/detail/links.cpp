#include "unidle/knobs/detail/links.h"

#include <algorithm>

namespace unidle::knobs::detail {

namespace {

constexpr int kMostSteps = 16;  // a longer chain is a circle

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-' || c == '[' || c == ']' || c == '#' || c == ':' || c == '@';
  });
}

/// What the whole value names, with dots between keys; nothing when it is no reference or more than one.
std::optional<std::string> name_in(std::string_view value) {
  std::string name;
  if (value.starts_with("${") && value.ends_with("}")) {
    name = value.substr(2, value.size() - 3);
  } else if (value.starts_with("%(") && value.ends_with(")s")) {
    name = value.substr(2, value.size() - 4);
  } else if (value.starts_with("@") && value.size() > 1) {
    name = value.substr(1);
  }
  if (!is_name(name) || name.find("oc.") == 0) {
    return std::nullopt;
  }
  std::string path;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '#' || name[i] == ':') {  // separators of MONAI bundles and INI files
      i += name[i] == ':' && i + 1 < name.size() && name[i + 1] == ':';
      path += '.';
    } else {
      path += name[i];
    }
  }
  return path;
}

std::string parent_of(std::string_view path) {
  const std::size_t cut = path.find_last_of(".[");
  return cut == std::string_view::npos ? std::string() : std::string(path.substr(0, cut));
}

std::string joined(const std::string& parent, const std::string& name) {
  return parent.empty() ? name : parent + "." + name;
}

/// ${.a} is beside the key, ${..a} one further up.
const Scalar* find_relative(const ConfigFile& file, const std::string& from, const std::string& name) {
  std::string base = parent_of(from);
  std::size_t dots = 1;
  for (; dots < name.size() && name[dots] == '.'; ++dots) {
    base = parent_of(base);
  }
  return file.find(joined(base, name.substr(dots)));
}

const Scalar* find_named(const ConfigFile& file, const std::string& from, const std::string& name) {
  if (name.starts_with('.')) {
    return find_relative(file, from, name);
  }
  if (const Scalar* top = file.find(name)) {
    return top;
  }
  // A file that is a part of a larger one counts from a key of its own.
  for (std::string base = parent_of(from); !base.empty(); base = parent_of(base)) {
    if (const Scalar* found = file.find(joined(base, name))) {
      return found;
    }
  }
  return nullptr;
}

}  // namespace

bool is_computed(std::string_view value) {
  return value.find("${") != std::string_view::npos || value.find("%(") != std::string_view::npos ||
         (value.starts_with('@') && value.size() > 1);
}

const Scalar* literal_of(const ConfigFile& file, const Scalar& scalar) {
  const Scalar* at = &scalar;
  for (int step = 0; step < kMostSteps; ++step) {
    if (!is_computed(at->value)) {
      return at;
    }
    const auto name = name_in(at->value);
    at = name ? find_named(file, at->path, *name) : nullptr;
    if (at == nullptr) {
      return nullptr;
    }
  }
  return nullptr;
}

}  // namespace unidle::knobs::detail
