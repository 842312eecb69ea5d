#include "unidle/knobs/detail/links.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"

namespace unidle::knobs::detail {

namespace {

constexpr int kMostSteps = 16;  // a longer chain is a cycle
// A collection that refers to itself has endless paths.
constexpr std::size_t kLongestPath = 4096;
constexpr std::size_t kMostReaders = 20'000;

bool in_name(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '-' || c == '[' || c == ']' || c == '#' ||
         c == ':' || c == '@';
}

bool is_name(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), in_name); }

/// MONAI bundles have separators other than dots.
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

/// The name that the whole value refers to, with dots between keys; nothing when it is not a single reference.
std::optional<std::string> name_in(std::string_view value) {
  std::string name;
  if (value.starts_with("${") && value.ends_with("}")) {
    name = value.substr(2, value.size() - 3);
  } else if (value.starts_with("@") && value.size() > 1) {
    name = value.substr(1);
  } else if (value.starts_with("<") && value.ends_with(">")) {
    name = value.substr(1, value.size() - 2);
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

/// ${.a} is a sibling of the key, ${..a} one level up.
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
  // In a file that is included in a larger one, names are relative to a key of its own.
  for (std::string base = parent_of(from); !base.empty(); base = parent_of(base)) {
    if (const Scalar* found = file.find(joined(base, name))) {
      return found;
    }
  }
  return nullptr;
}

/// Every name that a text may refer to, including a resolver's argument: ${oc.select:a.b,4}.
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
    } else if (value[i] == '@' || value[i] == '<' || (value[i] == '%' && i == 0)) {
      add(i + 1);
    }
  }
  return names;
}

/// Dotted names in a Python expression.
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

/// To the program, a.<<.b and a.<<[0].b are a.b.
std::string without_merges(std::string path) {
  for (std::size_t at = path.find("<<"); at != std::string::npos; at = path.find("<<", at)) {
    std::size_t end = at + 2;
    end = end < path.size() && path[end] == '[' ? std::min(path.find(']', end), path.size() - 1) + 1 : end;
    path.erase(at, std::min(end + 1, path.size()) - at);
  }
  return path;
}

/// The keys that a name may mean in the value of key `at`.
std::vector<std::string> meanings(const ConfigFile& file, const std::string& at, const std::string& name) {
  if (file.format() == Format::kPython) {
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

}  // namespace

struct Readers::Search {
  std::set<std::string> seen;
  std::vector<KeyReader> found;
  std::vector<std::string> left;  // paths whose readers are not looked up yet

  void add(const std::string& path, int line, bool whole) {
    if (path.size() > kLongestPath || found.size() > kMostReaders) {
      throw Error(ErrorCode::kInput, path.substr(0, 100), "takes its value from itself, or from too many places");
    }
    if (seen.insert(path).second) {
      found.push_back({path, line, whole});
      left.push_back(path);
    }
  }
};

Readers::Readers(const ConfigFile& file) : file_(file) {
  for (const Scalar& scalar : file.scalars()) {
    by_begin_.emplace(scalar.begin, &scalar);
    const bool expression = file.format() == Format::kPython && !scalar.quoted && !scalar.editable;
    for (const std::string& name : expression ? names_in_expression(scalar.value) : names_within(scalar.value)) {
      const bool whole = name_in(scalar.value).has_value() || scalar.value == name;
      for (std::string& meant : meanings(file, scalar.path, name)) {
        by_meaning_.emplace(std::move(meant), Reference{&scalar, whole});
      }
    }
  }
}

std::vector<KeyReader> Readers::of(const Scalar& scalar) const {
  Search search;
  search.seen.insert(without_merges(scalar.path));
  visit(scalar.path, &scalar, search);
  while (!search.left.empty()) {
    const std::string path = std::move(search.left.back());
    search.left.pop_back();
    visit_references(path, search);
  }
  std::stable_sort(search.found.begin(), search.found.end(),
                   [](const KeyReader& a, const KeyReader& b) { return a.line < b.line; });
  return std::move(search.found);
}

/// Visits everything that reads the key `path`, whose literal is `written`.
void Readers::visit(const std::string& path, const Scalar* written, Search& search) const {
  const auto [first, last] = by_begin_.equal_range(written->begin);
  for (auto each = first; each != last; ++each) {
    const Scalar& other = *each->second;
    if (other.end != written->end) {
      continue;
    }
    const std::string as_seen = without_merges(other.path);
    const Scalar* own = as_seen != other.path ? file_.find(as_seen) : nullptr;
    if (own == nullptr || own->begin == other.begin) {
      search.add(as_seen, other.line, true);
    }
  }
  visit_references(path, search);
}

/// Visits references to the key, and to each enclosing collection, in which its readers have the same relative path.
void Readers::visit_references(const std::string& path, Search& search) const {
  for (std::size_t end = path.size(); end != 0 && end != std::string::npos; end = path.find_last_of(".[", end - 1)) {
    const auto [first, last] = by_meaning_.equal_range(std::string_view(path).substr(0, end));
    for (auto each = first; each != last; ++each) {
      const Reference& reference = each->second;
      search.add(reference.from->path + path.substr(end), reference.from->line, reference.whole);
    }
  }
}

std::size_t begin_of_reference(std::string_view text, std::size_t begin) {
  std::string_view before = text.substr(0, begin);
  while (!before.empty() && is_blank(before.back())) {
    before.remove_suffix(1);
  }
  for (const std::string_view tag : {"!ref", "!copy"}) {
    if (before.size() < begin && before.ends_with(tag)) {
      return before.size() - tag.size();
    }
  }
  return begin;
}

bool is_computed(std::string_view value) {
  const bool hyper = value.starts_with('<') && value.ends_with('>') && name_in(value);
  return hyper || value.find("${") != std::string_view::npos || (value.starts_with('@') && value.size() > 1);
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
