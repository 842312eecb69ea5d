// Kinds of sources by name, for other languages than C++: one file each in sources/.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unidle/data/source.h"

namespace unidle::data {

/// A caller's array. The caller keeps it alive and unchanged as long as the source.
struct ArrayView {
  const std::byte* data = nullptr;
  DType dtype = DType::kU8;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // bytes per axis

  bool contiguous() const;
};

/// Options that a caller passes to a source, by name. Throws kUsage for a value of the wrong type, and from done() for
/// an unknown name.
class SourceOptions {
 public:
  SourceOptions(std::string_view kind, const nlohmann::json& values);

  /// Texts may also be given as {"hex": "..."}, for paths that are not UTF-8.
  std::string text(std::string_view name);  // required
  std::string word(std::string_view name, std::string_view otherwise);
  std::int64_t integer(std::string_view name, std::int64_t otherwise);
  int small(std::string_view name, int otherwise);  // a whole number in range
  double real(std::string_view name, double otherwise);
  bool flag(std::string_view name, bool otherwise);
  std::vector<double> reals(std::string_view name, std::vector<double> otherwise);
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> otherwise);
  std::vector<std::string> texts(std::string_view name, std::vector<std::string> otherwise);
  /// Nothing when the option is not given; an empty list is a value.
  std::optional<std::vector<std::string>> some_texts(std::string_view name);
  /// A list of objects, each with its own options; empty when the option is not given.
  std::vector<SourceOptions> several(std::string_view name);
  /// The value of one of the names; the default is the first.
  template <typename Value>
  Value one_of(std::string_view name, std::initializer_list<std::pair<const char*, Value>> values) {
    const std::string chosen = word(name, values.begin()->first);
    std::string names;
    for (const auto& [spelling, value] : values) {
      if (chosen == spelling) {
        return value;
      }
      names += (names.empty() ? "" : ", ") + std::string(spelling);
    }
    bad(name, "one of " + names);
  }
  void done() const;

 private:
  const nlohmann::json* find(std::string_view name);
  /// The list under this name, if given, whose elements must all satisfy `fits`.
  template <typename Fits>
  const nlohmann::json* list(std::string_view name, std::string_view expected, const Fits& fits);
  [[noreturn]] void bad(std::string_view name, std::string_view expected) const;

  std::string kind_;
  const nlohmann::json& values_;
  std::vector<std::string_view> asked_;
};

struct SourceKind {
  std::string_view name;
  std::unique_ptr<Source> (*open)(SourceOptions& options, std::span<const ArrayView> arrays);
};

/// All kinds, one per file in sources/, by file name.
const std::vector<const SourceKind*>& all_sources();

/// Opens a source of this kind. Throws kUsage for an unknown kind or option, and everything the source throws.
std::unique_ptr<Source> open_source(std::string_view kind, std::string_view options_json,
                                    std::span<const ArrayView> arrays);

}  // namespace unidle::data
