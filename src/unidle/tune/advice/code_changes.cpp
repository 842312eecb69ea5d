#include "unidle/tune/advice/code_changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/knobs/knob.h"
#include "unidle/knobs/setting_call.h"

namespace unidle::tune {

namespace {

/// Goes above the function that makes samples slow. Its arguments are the key; changes of anything else it depends on
/// need a new version.
constexpr std::string_view kCached = R"(@unidle.cached(".unidle/cache", version=1))";

/// The setting as a Loader of the package unidle takes it; empty when it has no such argument.
std::string in_package(const knobs::Knob& knob, const std::string& value) {
  const std::string& code = knob.change.package_code;
  return code.empty() ? code : fmt::format(fmt::runtime(code), value);
}

}  // namespace

std::vector<CodeChange> code_changes(const std::vector<knobs::Change>& changes,
                                     const std::map<std::string, std::string>& places, const std::string& device) {
  const auto place = [&](const std::string& name) {
    const auto found = places.find(name);
    return found == places.end() ? std::string() : found->second;
  };
  const std::string near = place("loader").empty() ? place("model") : place("loader");
  std::vector<CodeChange> found;
  for (const knobs::Change& change : changes) {
    const knobs::Knob* knob = knobs::find_knob(change.knob);
    const std::string value = knobs::python_value(*change.to);
    const bool package = place("made_with").starts_with("unidle") && knob != nullptr &&
                         (knob->change.code_place == "loader" || knob->change.code_place == "dataset");
    const std::string code = package                     ? in_package(*knob, value)
                             : knob == nullptr           ? std::string()
                             : knob->change.code_for     ? knob->change.code_for(*change.to, device)
                             : knob->change.code.empty() ? std::string()
                                                         : fmt::format(fmt::runtime(knob->change.code), value);
    if (change.knob == "cache.features" && change.to != "off" && !place("function").empty()) {
      found.push_back({change.knob, place("function"), std::string(kCached), value, near});
    } else if (!code.empty()) {
      found.push_back({change.knob, place(knob->change.code_place), code, value, near});
    }
  }
  return found;
}

}  // namespace unidle::tune
