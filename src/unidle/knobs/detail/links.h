// Values that refer to the value of another key: ${a.b}, @a, and HyperPyYAML's !ref <a>.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs::detail {

/// Whether the text is or contains something that the program replaces: ${...}, @name, and in some files <name>.
bool is_computed(std::string_view value);

/// The first byte to replace when a literal replaces the value at `begin`: includes HyperPyYAML's "!ref " before a
/// name, because a number after it would be read as text.
std::size_t begin_of_reference(std::string_view text, std::size_t begin);

/// The scalar that finally holds the literal: `scalar` itself, or the target of its reference, over any number of
/// steps. nullptr when the value is computed in another way (a resolver call, text around the reference), refers to
/// nothing in this file, or is part of a cycle.
const Scalar* literal_of(const ConfigFile& file, const Scalar& scalar);

/// A key whose value depends on another one.
struct KeyReader {
  std::string path;  // as the program sees it: keys copied by a merge key are beside it
  int line = 0;
  bool whole = false;  // its value equals the other one, rather than being derived from it
};

/// The references in one file, indexed once, so that queries for all keys take linear time. The file must outlive it
/// and not change meanwhile. Not thread-safe.
class Readers {
 public:
  explicit Readers(const ConfigFile& file);

  /// All other keys whose value equals that of `scalar` or is derived from it, over any number of steps: through
  /// aliases, merge keys and aliased collections, references to it or to an enclosing collection, also inside longer
  /// texts, and in Python files expressions with its name. In file order. Throws kInput if there are endlessly many.
  std::vector<KeyReader> of(const Scalar& scalar) const;

 private:
  struct Reference {
    const Scalar* from;
    bool whole;  // its value is the referenced one
  };
  struct Search;
  void visit(const std::string& path, const Scalar* written, Search& search) const;
  void visit_references(const std::string& path, Search& search) const;

  const ConfigFile& file_;
  std::multimap<std::size_t, const Scalar*> by_begin_;
  std::multimap<std::string, Reference, std::less<>> by_meaning_;  // by each path that a reference may mean
};

}  // namespace unidle::knobs::detail
