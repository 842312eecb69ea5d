#include "unidle/diagnose/in_program/setting_words.h"

#include <fmt/format.h>

namespace unidle::diagnose {

void put_setting_words(const knobs::ConfigFile& file, const std::string& path, const std::string& to,
                       knobs::InProgram& change) {
  const knobs::Scalar* scalar = file.find(path);
  if (scalar != nullptr && !scalar->argument.empty()) {
    change.words = "default=" + to;
    change.call = "add_argument";
    return;
  }
  const std::string key = path.substr(path.find_last_of("./") + 1);
  const bool assigns = file.format() == knobs::Format::kPython || file.format() == knobs::Format::kToml;
  change.words = fmt::format("{}{}{}", key, assigns ? " = " : ": ", to);
}

}  // namespace unidle::diagnose
