#include "unidle/knobs/detail/links.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace unidle::knobs::detail {

namespace {

constexpr int kMostSteps = 16;  // a longer chain is a circle

bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-' || c == '[' || c == ']' || c == '#' || c == ':' || c == '@';
}

bool is_name(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), in_name); }

/// Separators of MONAI bundles and INI files are dots.
std::string with_dots(std::string_view name) {
  std::string path;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '#' || name[i] == ':') {
      i += name[i] == ':' && i + 1 < name.size() && name[i + 1] == ':';
      path += '.';
    } else {
      path += name[i];
    }
  }
  return path;
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
  return with_dots(name);
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

/// Every name that a text may refer to. A resolver's argument counts as well as the whole: ${oc.select:a.b,4}.
std::vector<std::string> names_within(std::string_view value) {
  std::vector<std::string> names;
  const auto add = [&](std::size_t from) {
    std::size_t to = from;
    while (to < value.size() && in_name(value[to])) {
      ++to;
    }
    const std::string_view name = value.substr(from, to - from);
    if (!name.empty()) {
      names.push_back(with_dots(name));
      const std::size_t colon = name.rfind(':');
      if (colon != std::string_view::npos && colon + 1 < name.size()) {
        names.push_back(with_dots(name.substr(colon + 1)));
      }
    }
  };
  for (std::size_t i = 0; i + 1 < value.size(); ++i) {
    if ((value[i] == '$' && value[i + 1] == '{') || (value[i] == '%' && value[i + 1] == '(')) {
      add(i + 2);
    } else if (value[i] == '@' || (value[i] == '%' && i == 0)) {
      add(i + 1);
    }
  }
  return names;
}

/// Dotted names in an expression of Python.
std::vector<std::string> names_in_expression(std::string_view text) {
  const auto in_word = [](char c) { return c == '.' || c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && in_word(text[end])) {
      ++end;
    }
    const std::string name(text.substr(at, end - at));
    if (!name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0) {
      names.push_back(name);
    }
    at = std::max(end, at + 1);
  }
  return names;
}

/// What follows `around` in `path`, when that is a collection around it: ".b[0]" of a.b[0] in a.
std::optional<std::string> rest_within(const std::string& path, const std::string& around) {
  const bool inside = path.size() > around.size() && path.starts_with(around) &&
                      (path[around.size()] == '.' || path[around.size()] == '[');
  return inside && !around.empty() ? std::optional(path.substr(around.size())) : std::nullopt;
}

/// a.<<.b and a.<<[0].b are a.b to the program.
std::string without_merges(std::string path) {
  for (std::size_t at = path.find("<<"); at != std::string::npos; at = path.find("<<", at)) {
    std::size_t end = at + 2;
    end = end < path.size() && path[end] == '[' ? std::min(path.find(']', end), path.size() - 1) + 1 : end;
    path.erase(at, std::min(end + 1, path.size()) - at);
  }
  return path;
}

class ReaderSearch {
 public:
  explicit ReaderSearch(const ConfigFile& file) : file_(file) {
    for (const Scalar& scalar : file.scalars()) {
      const bool expression = file.format() == Format::kPython && !scalar.quoted && !scalar.editable;
      auto names = expression ? names_in_expression(scalar.value) : names_within(scalar.value);
      if (!names.empty()) {
        references_.push_back({&scalar, std::move(names)});
      }
    }
  }

  std::vector<KeyReader> run(const Scalar& scalar) {
    seen_.insert(without_merges(scalar.path));
    visit(scalar.path, &scalar);
    std::stable_sort(found_.begin(), found_.end(),
                     [](const KeyReader& a, const KeyReader& b) { return a.line < b.line; });
    return std::move(found_);
  }

 private:
  struct References {
    const Scalar* scalar;
    std::vector<std::string> names;
  };

  void add(const std::string& path, int line, bool whole) {
    if (seen_.insert(path).second) {
      found_.push_back({path, line, whole});
      visit(path, nullptr);
    }
  }

  /// Everything that reads the key `path`; `written` is where its value stands, when the file has it.
  void visit(const std::string& path, const Scalar* written) {
    for (const Scalar& other : file_.scalars()) {
      const bool copy = written != nullptr && other.begin == written->begin && other.end == written->end;
      const std::string as_seen = copy ? without_merges(other.path) : "";
      const Scalar* own = copy && as_seen != other.path ? file_.find(as_seen) : nullptr;
      if (copy && (own == nullptr || own->begin == other.begin)) {
        add(as_seen, other.line, true);
      }
    }
    for (const References& each : references_) {
      for (const std::string& name : each.names) {
        refer(each, name, path);
      }
    }
  }

  void refer(const References& from, const std::string& name, const std::string& path) {
    const bool whole = name_in(from.scalar->value).has_value() || from.scalar->value == name;
    for (const std::string& meant : meanings(from.scalar->path, name)) {
      if (meant == path) {
        add(from.scalar->path, from.scalar->line, whole);
      } else if (const auto rest = rest_within(path, meant)) {
        add(from.scalar->path + *rest, from.scalar->line, whole);
      }
    }
  }

  /// The keys that a name may mean where it stands.
  std::vector<std::string> meanings(const std::string& at, const std::string& name) const {
    if (file_.format() == Format::kPython) {
      return {name, name.substr(name.rfind('.') + 1)};
    }
    if (name.starts_with('.')) {
      std::string base = parent_of(at);
      std::size_t dots = 1;
      for (; dots < name.size() && name[dots] == '.'; ++dots) {
        base = parent_of(base);
      }
      return {joined(base, name.substr(dots))};
    }
    std::vector<std::string> found = {name};
    for (std::string base = parent_of(at); !base.empty(); base = parent_of(base)) {
      found.push_back(joined(base, name));
    }
    return found;
  }

  const ConfigFile& file_;
  std::vector<References> references_;
  std::set<std::string> seen_;
  std::vector<KeyReader> found_;
};

}  // namespace

std::vector<KeyReader> readers_of(const ConfigFile& file, const Scalar& scalar) {
  return ReaderSearch(file).run(scalar);
}

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
