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

/// From the extension: .json and .jsonc; .toml; .py; anything else is YAML. Throws kInput for .ini and .cfg.
Format format_of(const std::filesystem::path& path);

/// One scalar of the file. `path` joins mapping keys by dots and has [i] for sequences: "optimizer.lr", "a.b[0].c".
struct Scalar {
  std::string path;
  std::string value;      // without quotes, escapes decoded
  int line = 0;           // 1-based
  std::size_t begin = 0;  // byte range in the source, including quotes
  std::size_t end = 0;
  bool quoted = false;
  bool editable = true;    // false for block scalars, plain scalars over several lines, and empty sequence items
  bool inherited = false;  // copied by a merge key or an aliased collection
  /// Byte range of an alias for a scalar that is written elsewhere; empty if there is none.
  std::size_t alias_begin = 0;
  std::size_t alias_end = 0;

  /// In a Python file: the accepted values, from add_argument(choices=...) or Literal[...]. If they are computed, only
  /// the current one.
  std::vector<std::string> choices = {};

  /// In a Python file: the flags in add_argument() whose default this is: "-b", "--batch-size".
  std::vector<std::string> argument = {};

  bool is_alias() const { return alias_end > alias_begin; }
};

struct NewValue {
  std::string path;
  std::string value;
};

/// YAML, JSON with comments, TOML, or Python's constants (see Format). Holds the source text; an edit keeps all other
/// bytes: comments, order, quoting, line ends. After each edit the text is parsed again; if any other value differs,
/// the edit is undone and Error kInternal is thrown. Not thread-safe.
class ConfigFile {
 public:
  /// Throws kInput with subject "path" or "path:line" when the file cannot be read or parsed, or is larger than any
  /// hand-written one (16 MiB).
  static ConfigFile load(const std::filesystem::path& path);
  /// `name` determines the format.
  static ConfigFile from_text(std::string text, std::string name);

  const std::string& name() const { return name_; }
  Format format() const { return format_; }
  const std::string& text() const { return text_; }
  /// All scalars in file order. A key without a value has an empty value and begin == end. The target of an alias is
  /// listed under the alias's path too, with the position of the anchor's literal.
  const std::vector<Scalar>& scalars() const { return scalars_; }
  /// The last scalar with that path (a file may repeat a key), or nullptr. Valid until the next edit.
  const Scalar* find(std::string_view path) const;
  /// Changes the scalar at `path`, or inserts it after the last key of the deepest existing mapping, in that mapping's
  /// indentation and style. Keeps the old value's quotes. Edits the anchor of an alias. Throws kInput when that is
  /// impossible: a block scalar, a repeated key, a parent that is not a mapping.
  void set(std::string_view path, std::string_view value);
  /// Like set(), but changes no other key: replaces an alias, or a value that only refers to another key, by a literal
  /// of its own. Throws kInput if other keys take their value from this one.
  void set_alone(std::string_view path, std::string_view value);
  /// Changes existing scalars: all of them or, if it throws, none. Parses the text once for all.
  void change(const std::vector<NewValue>& values);

 private:
  /// The new text of an edited scalar; nullptr for an unchanged one.
  using Edited = std::function<const std::string*(const Scalar&)>;

  static bool same_values(const std::vector<Scalar>& before, const std::vector<Scalar>& after, const Edited& edited);
  const Scalar& the_only(std::string_view path) const;
  void replace_alias(const Scalar& scalar, const std::string& value);
  void insert(std::string_view path, std::string_view value);
  /// Accepts `text` if every value is unchanged, except the edited ones or, without `edited`, a new one at `path`.
  void accept(std::string text, const Edited& edited, std::string_view path, std::string_view value);
  void take(std::string text, std::vector<Scalar> scalars);

  struct Place {
    std::size_t first;
    std::size_t last;  // differs if the file repeats the key
  };

  std::string name_;
  Format format_ = Format::kYaml;
  std::string text_;
  std::vector<Scalar> scalars_;
  std::map<std::string, Place, std::less<>> places_;  // by path
};

/// A unified diff of two texts, three lines of context; empty when they are equal.
std::string unified_diff(std::string_view before, std::string_view after, std::string_view name);

}  // namespace unidle::knobs
