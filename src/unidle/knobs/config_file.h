// A configuration file that can be read with positions and edited without touching any other byte.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::knobs {

enum class Format { kYaml, kJson, kToml, kPython };

/// By the extension: .json and .jsonc; .toml; .py; everything else is YAML. Throws kInput for .ini and .cfg.
Format format_of(const std::filesystem::path& path);

/// One scalar of the file. `path` has dots between mapping keys and [i] into sequences: "optimizer.lr", "a.b[0].c".
struct Scalar {
  std::string path;
  std::string value;      // without quotes, escapes resolved
  int line = 0;           // 1-based
  std::size_t begin = 0;  // byte range of the scalar's source, quotes included
  std::size_t end = 0;
  bool quoted = false;
  bool editable = true;    // false for block scalars, plain scalars folded over lines, and empty sequence items
  bool inherited = false;  // not written here: copied by a merge key or with an aliased collection
  /// Byte range of the alias that stands here for a scalar written elsewhere; empty where there is none.
  std::size_t alias_begin = 0;
  std::size_t alias_end = 0;

  /// In a Python file: the only values that the program takes here, as add_argument(choices=...) or Literal[...] say.
  /// Where they are computed, the present one alone.
  std::vector<std::string> choices = {};

  /// In a Python file: names of the argument whose default this is, as add_argument() has them: "-b", "--batch-size".
  std::vector<std::string> argument = {};

  bool is_alias() const { return alias_end > alias_begin; }
};

struct NewValue {
  std::string path;
  std::string value;
};

/// YAML, JSON with comments, TOML, or Python's constants (see Format). Holds the source text; every edit leaves
/// all other bytes as they were: comments, order, quoting, line ends. After each edit the text is parsed again and
/// every other value must be equal, otherwise the edit is undone and Error kInternal is thrown. Not thread-safe.
class ConfigFile {
 public:
  /// Throws kInput with subject "path" or "path:line" when it cannot be read or parsed, or is larger than anything that
  /// people write (16 MiB).
  static ConfigFile load(const std::filesystem::path& path);
  /// The format follows from `name`.
  static ConfigFile from_text(std::string text, std::string name);

  const std::string& name() const { return name_; }
  Format format() const { return format_; }
  const std::string& text() const { return text_; }
  /// All scalars in file order. A key without a value is there with an empty value and begin == end. What an alias
  /// stands for is there under the alias's path too, with the position of the anchor's literal.
  const std::vector<Scalar>& scalars() const { return scalars_; }
  /// The last one of that path (a file may repeat a key), or nullptr. Pointers hold until the next set().
  const Scalar* find(std::string_view path) const;
  /// Changes the scalar at `path`, or inserts it where a person would put it: after the last key of the deepest mapping
  /// that exists, in that mapping's indentation and style. Keeps the old value's quoting. An alias is edited at its
  /// anchor. Throws kInput when that cannot be done: a block scalar, a repeated key, a parent that is no mapping.
  void set(std::string_view path, std::string_view value);
  /// As set(), but what other keys say stays: an alias, or a value that only refers to another key, makes room for a
  /// literal of its own. Throws kInput where other keys take their value from this one.
  void set_alone(std::string_view path, std::string_view value);
  /// Changes scalars that are there, all or, when it throws, none. The text is read again once, however many they are.
  void change(const std::vector<NewValue>& values);

 private:
  /// What an edit makes of a scalar; nullptr where that stays as it is.
  using Edited = std::function<const std::string*(const Scalar&)>;

  static bool same_values(const std::vector<Scalar>& before, const std::vector<Scalar>& after, const Edited& edited);
  const Scalar& the_only(std::string_view path) const;
  void replace_alias(const Scalar& scalar, const std::string& value);
  void insert(std::string_view path, std::string_view value);
  /// Takes `text` when every value is what it was, but for those that were edited, or without `edited` a new one at
  /// `path`.
  void accept(std::string text, const Edited& edited, std::string_view path, std::string_view value);
  void take(std::string text, std::vector<Scalar> scalars);

  struct Place {
    std::size_t first;
    std::size_t last;  // another one when the file repeats the key
  };

  std::string name_;
  Format format_ = Format::kYaml;
  std::string text_;
  std::vector<Scalar> scalars_;
  std::map<std::string, Place, std::less<>> places_;  // of each path among scalars_
};

/// A unified diff of two texts, three lines of context; empty when they are equal.
std::string unified_diff(std::string_view before, std::string_view after, std::string_view name);

}  // namespace unidle::knobs
