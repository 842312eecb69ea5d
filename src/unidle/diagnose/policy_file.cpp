#include "unidle/diagnose/policy_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <variant>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::diagnose {

namespace {

constexpr double kMost = 1e15;  // fits every threshold type but int, which has its own bound
constexpr double kMostInt = 1e9;

std::string place_of(const std::filesystem::path& path, const YAML::Mark& mark) {
  return mark.is_null() ? path.string() : fmt::format("{}:{}", path.string(), mark.line + 1);
}

YAML::Node load(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  try {
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw Error(ErrorCode::kInput, place_of(path, error.mark), "is not YAML: " + error.msg,
                "thresholds and their values were expected, such as warning_share: 0.2");
  }
}

const Threshold& threshold_of(const YAML::Node& key, const std::filesystem::path& path) {
  const std::string name = key.IsScalar() ? key.Scalar() : "";
  const auto found = std::find_if(kThresholds.begin(), kThresholds.end(),
                                  [&](const Threshold& threshold) { return threshold.name == name; });
  if (found == kThresholds.end()) {
    throw Error(ErrorCode::kInput, place_of(path, key.Mark()), fmt::format("there is no threshold \"{}\"", name),
                "unidle diagnose --print-policy lists them");
  }
  return *found;
}

/// `where`: the line, for errors.
void set(const Threshold& threshold, const YAML::Node& value, const std::string& where, Policy& policy) {
  const bool real = std::holds_alternative<double Policy::*>(threshold.field);
  const double most = std::holds_alternative<int Policy::*>(threshold.field) ? kMostInt : kMost;
  double number = 0;
  const bool is_number = value.IsScalar() && YAML::convert<double>::decode(value, number) && std::isfinite(number);
  if (!is_number || number < 0 || number > most || (!real && number != std::floor(number))) {
    throw Error(ErrorCode::kInput, where,
                fmt::format("{}: {} does not fit", threshold.name,
                            value.IsScalar() ? fmt::format("\"{}\"", value.Scalar()) : "what stands there"),
                fmt::format("{} from 0 on was expected", real ? "a number" : "a whole number"));
  }
  std::visit([&](auto field) { policy.*field = static_cast<std::remove_reference_t<decltype(policy.*field)>>(number); },
             threshold.field);
}

}  // namespace

Policy read_policy(const std::filesystem::path& path) {
  const YAML::Node root = load(path);
  Policy policy;
  if (root.IsNull()) {
    return policy;  // an empty file, or only comments
  }
  if (!root.IsMap()) {
    throw Error(ErrorCode::kInput, place_of(path, root.Mark()), "is not a list of thresholds",
                "names and values were expected, such as warning_share: 0.2");
  }
  std::set<std::string_view> seen;
  for (const auto& entry : root) {
    const Threshold& threshold = threshold_of(entry.first, path);
    if (!seen.insert(threshold.name).second) {
      throw Error(ErrorCode::kInput, place_of(path, entry.first.Mark()), fmt::format("{} stands twice", threshold.name),
                  "each threshold was expected once");
    }
    set(threshold, entry.second, place_of(path, entry.first.Mark()), policy);
  }
  return policy;
}

std::string to_yaml(const Policy& policy) {
  std::string text;
  for (const Threshold& threshold : kThresholds) {
    text += fmt::format("{}: {}\n", threshold.name,
                        std::visit([&](auto field) { return fmt::format("{}", policy.*field); }, threshold.field));
  }
  return text;
}

}  // namespace unidle::diagnose
