#include "unidle/knobs/apply_arguments.h"

#include <fmt/format.h>

#include "unidle/base/error.h"
#include "unidle/knobs/config_file.h"
#include "unidle/knobs/knob.h"

namespace unidle::knobs {

namespace {

void add_asked(Settings& wanted, const std::string& name, const std::string& value, const std::string& subject) {
  const Knob& knob = knob_named(name, subject);
  const auto parsed = parse_value(knob, value);
  if (!parsed) {
    std::string expected = std::string(to_string(knob.type));
    for (const std::string& choice : knob.choices) {
      expected += " " + choice;
    }
    throw Error(ErrorCode::kUsage, subject, fmt::format("{} does not take '{}'", name, value), "expected " + expected);
  }
  wanted.set(name, *parsed);
}

}  // namespace

Settings apply_settings(const std::vector<std::string>& arguments) {
  Settings wanted;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (equals != std::string::npos) {
      add_asked(wanted, argument.substr(0, equals), argument.substr(equals + 1), "--apply " + argument);
      continue;
    }
    const ConfigFile file = ConfigFile::load(argument);
    for (const Scalar& scalar : file.scalars()) {
      add_asked(wanted, scalar.path, scalar.value, fmt::format("{}:{}: {}", argument, scalar.line, scalar.path));
    }
  }
  return wanted;
}

}  // namespace unidle::knobs
