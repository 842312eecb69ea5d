// A workload's configuration as the engine reads it; lines that begin with "--" are KEY=VALUE words of the command.
#include "fuzz.h"
#include "unidle/train/config.h"

namespace unidle::fuzz::targets {

namespace {

void read_all(const train::Config& config) {
  for (const train::Setting& setting : train::all_settings()) {
    config.text(setting.name);
    if (config.text(setting.name).empty()) {
      continue;
    }
    switch (setting.type) {
      case train::SettingType::kBool: config.flag(setting.name); break;
      case train::SettingType::kInt: config.integer(setting.name); break;
      case train::SettingType::kReal: config.real(setting.name); break;
      default: break;
    }
  }
}

void run_engine_config(std::string_view bytes) {
  std::string text;
  std::vector<std::string> overrides;
  for (const std::string_view line : lines_of(bytes)) {
    if (line.starts_with("--")) {
      overrides.emplace_back(line.substr(2));
    } else {
      text.append(line).append("\n");
    }
  }
  may_refuse([&] { read_all(train::Config::from_text(text, "a.yaml", overrides)); },
             {ErrorCode::kInput, ErrorCode::kUsage});
}

}  // namespace

const Target& engine_config() {
  static const Target kTarget = {"engine_config", run_engine_config};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
