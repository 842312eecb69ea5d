// A configuration file that can be read with positions and edited without touching any other byte.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::knobs {

/// One scalar of the file. `path` has dots between mapping keys and [i] into sequences: "optimizer.lr", "a.b[0].c".
struct Scalar {
  std::string path;
  std::string value;         // without quotes, escapes resolved
  int line = 0;              // 1-based
  std::size_t begin = 0;     // byte range of the scalar's source, quotes included
  std::size_t end = 0;
  bool quoted = false;
};

/// YAML for now. Holds the source text; every edit leaves all other bytes as they were: comments, order, quoting, line
/// ends. After each edit the text is parsed again and every other value must be equal, otherwise the edit is undone and
/// Error kInternal is thrown. Not thread-safe.
class ConfigFile {
 public:
  /// Throws kInput with subject "path" or "path:line" when it cannot be read or parsed.
  static ConfigFile load(const std::filesystem::path& path);
  static ConfigFile from_text(std::string text, std::string name);

  const std::string& name() const { return name_; }
  const std::string& text() const { return text_; }
  /// All scalars in file order.
  const std::vector<Scalar>& scalars() const { return scalars_; }
  const Scalar* find(std::string_view path) const;
  /// Changes the scalar at `path`, or inserts it where a person would put it: after the last key of the deepest mapping
  /// that exists, in that mapping's indentation and style. Keeps the old value's quoting.
  void set(std::string_view path, std::string_view value);

 private:
  std::string name_;
  std::string text_;
  std::vector<Scalar> scalars_;
};

/// A unified diff of two texts, three lines of context; empty when they are equal.
std::string unified_diff(std::string_view before, std::string_view after, std::string_view name);

}  // namespace unidle::knobs
