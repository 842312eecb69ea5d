// Values that stand for the value of another key: ${a.b}, @a, and HyperPyYAML's !ref <a>.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs::detail {

/// True when the text is, or contains, something that the program replaces: ${...}, @name;
/// and where it is <name>.
bool is_computed(std::string_view value);

/// Where a literal begins that takes the place of a value at `begin`: HyperPyYAML's "!ref " goes with the name that it
/// stands before, for behind it a number is read as a text.
std::size_t begin_of_reference(std::string_view text, std::size_t begin);

/// The scalar that finally holds the literal: `scalar` itself, or what its whole value refers to, over as many steps as
/// it takes. nullptr when the value is computed in another way (a resolver call, text around the reference), refers to
/// nothing in this file, or in a circle.
const Scalar* literal_of(const ConfigFile& file, const Scalar& scalar);

/// A key whose value changes with that of another one.
struct KeyReader {
  std::string path;  // as the program sees it: what a merge key copies stands beside the merge key
  int line = 0;
  bool whole = false;  // its value is the other one's, not made from it
};

/// Who reads what in one file, looked up once, so that asking for every key costs what each costs. The file must
/// outlive it and not change meanwhile. Not thread-safe.
class Readers {
 public:
  explicit Readers(const ConfigFile& file);

  /// All keys but `scalar`'s own that get its value or make theirs from it, over any number of steps: aliases, what
  /// merge keys and aliased collections copy, references to it or to a collection around it, also inside of longer
  /// texts, and in Python files expressions with its name. In the order of the file. Throws kInput where that has
  /// no end.
  std::vector<KeyReader> of(const Scalar& scalar) const;

 private:
  struct Reference {
    const Scalar* from;
    bool whole;  // its value is what it names
  };
  struct Search;
  void visit(const std::string& path, const Scalar* written, Search& search) const;
  void visit_references(const std::string& path, Search& search) const;

  const ConfigFile& file_;
  std::multimap<std::size_t, const Scalar*> by_begin_;
  std::multimap<std::string, Reference, std::less<>> by_meaning_;  // by each path that a reference may name
};

}  // namespace unidle::knobs::detail
