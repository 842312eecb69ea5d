// Kinds of sources by name, for callers that are not C++: one file each in sources/.
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

/// Somebody else's array; who passes it keeps it alive and unchanged as long as the source.
struct ArrayView {
  const std::byte* data = nullptr;
  DType dtype = DType::kU8;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // bytes an axis

  bool contiguous() const;
};

/// What a caller asks a source for, by name. Throws kUsage for a value of another type, and from done() for a name that
/// nobody asked for.
class SourceOptions {
 public:
  SourceOptions(std::string_view kind, const nlohmann::json& values);

  /// Texts also come as {"hex": "..."}, for paths whose bytes are no UTF-8.
  std::string text(std::string_view name);  // must be there
  std::string word(std::string_view name, std::string_view otherwise);
  std::int64_t integer(std::string_view name, std::int64_t otherwise);
  int small(std::string_view name, int otherwise);  // a whole number that fits
  double real(std::string_view name, double otherwise);
  bool flag(std::string_view name, bool otherwise);
  std::vector<double> reals(std::string_view name, std::vector<double> otherwise);
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> otherwise);
  std::vector<std::string> texts(std::string_view name, std::vector<std::string> otherwise);
  /// Nothing where the option is not given; an empty list is one.
  std::optional<std::vector<std::string>> some_texts(std::string_view name);
  /// A list of objects, each with options of its own; none where it is not given.
  std::vector<SourceOptions> several(std::string_view name);
  /// One of the names; the first one's value where there is none.
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
  /// The list at that name, if there is one, whose elements all satisfy `fits`.
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

/// One a file in sources/, by file name.
const std::vector<const SourceKind*>& all_sources();

/// Opens the source of that kind. Throws kUsage for a kind or an option that there is not, and what the source throws.
std::unique_ptr<Source> open_source(std::string_view kind, std::string_view options_json,
                                    std::span<const ArrayView> arrays);

}  // namespace unidle::data
