#include "unidle/cli/apply.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/knobs/config_file.h"
#include "unidle/knobs/knob.h"

namespace unidle::cli {

namespace {

nlohmann::json typed(const knobs::Knob& knob, const std::string& canonical) {
  switch (knob.type) {
    case knobs::ValueType::kBool: return canonical == "true";
    case knobs::ValueType::kInt: return std::stoll(canonical);
    case knobs::ValueType::kDouble: return std::stod(canonical);
    case knobs::ValueType::kChoice: break;
  }
  return canonical;
}

void add(tune::Settings& wanted, const std::string& name, const std::string& value, const std::string& subject) {
  const knobs::Knob* knob = knobs::find_knob(name);
  if (knob == nullptr) {
    throw Error(ErrorCode::kUsage, subject, fmt::format("there is no knob {}", name), "unidle knobs lists them");
  }
  const auto canonical = knobs::canonical_value(*knob, value);
  if (!canonical) {
    std::string expected = std::string(knobs::to_string(knob->type));
    for (const std::string& choice : knob->choices) {
      expected += " " + choice;
    }
    throw Error(ErrorCode::kUsage, subject, fmt::format("{} does not take '{}'", name, value), "expected " + expected);
  }
  wanted[name] = *canonical;
}

}  // namespace

tune::Settings apply_settings(const std::vector<std::string>& arguments) {
  tune::Settings wanted;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (equals != std::string::npos) {
      add(wanted, argument.substr(0, equals), argument.substr(equals + 1), "--apply " + argument);
      continue;
    }
    const knobs::ConfigFile file = knobs::ConfigFile::load(argument);
    for (const knobs::Scalar& scalar : file.scalars()) {
      add(wanted, scalar.path, scalar.value, fmt::format("{}:{}: {}", argument, scalar.line, scalar.path));
    }
  }
  return wanted;
}

std::string apply_json(const tune::Settings& settings) {
  if (settings.empty()) {
    return {};
  }
  nlohmann::json wanted = nlohmann::json::object();
  for (const auto& [name, value] : settings) {
    wanted[name] = typed(*knobs::find_knob(name), value);
  }
  return json_text(wanted, -1);
}

}  // namespace unidle::cli
