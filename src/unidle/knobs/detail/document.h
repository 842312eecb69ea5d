// A YAML text as a tree with source positions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs::detail {

struct Entry {
  int key = -1;  // -1 in a sequence
  int value = -1;
};

struct Node {
  enum class Kind { kNull, kScalar, kMap, kSequence, kAlias };

  Kind kind = Kind::kNull;
  std::size_t begin = 0;  // byte offset after anchor and tag
  std::size_t end = 0;
  int line = 0;    // 1-based
  int column = 0;  // 0-based, in bytes
  bool quoted = false;
  bool block = false;           // a literal or folded block scalar
  bool editable = false;        // the source between begin and end is exactly the value
  bool flow = false;            // for a collection: written with braces or brackets
  std::size_t content_end = 0;  // for a flow collection: after its last byte that is neither blank nor comment
  std::string value;
  std::vector<Entry> entries;
  int target = -1;  // for an alias: its target node
};

/// All documents of one text. Not thread-safe; keeps no reference to the text.
class Document {
 public:
  /// Throws kInput with subject "name:line".
  static Document parse(const std::string& text, const std::string& name);

  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(int index) const { return nodes_[static_cast<std::size_t>(index)]; }
  /// The top node of every document in the text.
  const std::vector<int>& roots() const { return roots_; }
  /// Every scalar with its path; the target of an alias is listed under the alias too, with the anchor's position.
  std::vector<Scalar> scalars() const;
  /// The value of `key` in a mapping, through aliases; -1 when absent.
  int child(int map, std::string_view key) const;

 private:
  friend class Builder;
  friend class JsonReader;
  std::vector<Node> nodes_;
  std::vector<int> roots_;
  std::string name_;
};

}  // namespace unidle::knobs::detail
