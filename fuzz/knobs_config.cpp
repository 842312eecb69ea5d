// Any bytes as a configuration file of every format: reading, recognition, edits and new keys. An edit may be refused,
// but it must never change a byte outside the value, and never crash.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "unidle/base/error.h"
#include "unidle/knobs/apply.h"
#include "unidle/knobs/config_file.h"
#include "unidle/knobs/recognize.h"

namespace {

using unidle::Error;
using unidle::ErrorCode;
using unidle::knobs::ConfigFile;
using unidle::knobs::Format;
using unidle::knobs::Scalar;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

/// The check behind every edit may undo one that goes wrong in YAML of the odder kinds, or in what is no Python; in the
/// other formats the places are exact.
void allow(const Error& failure, const ConfigFile& file) {
  const bool refused = failure.code() == ErrorCode::kInput;
  const bool lenient = file.format() == Format::kYaml || file.format() == Format::kPython;
  const bool undone = failure.code() == ErrorCode::kInternal && lenient;
  if (!refused && !undone) {
    std::fprintf(stderr, "%s\n", failure.what());
  }
  require(refused || undone);
}

void edit(const ConfigFile& original, std::size_t choice, const char* value) {
  const Scalar scalar = original.scalars()[choice % original.scalars().size()];
  ConfigFile file = original;
  try {
    file.set(scalar.path, value);
  } catch (const Error& failure) {
    allow(failure, file);
    require(file.text() == original.text());
    return;
  }
  const Scalar* target = original.find(scalar.path);
  require(file.text().starts_with(original.text().substr(0, target->begin)));
  require(file.text().ends_with(original.text().substr(target->end)));
  require(file.find(scalar.path)->value == value);
}

void add(const ConfigFile& original, const std::string& path) {
  ConfigFile file = original;
  try {
    file.set(path, "7");
  } catch (const Error& failure) {
    allow(failure, file);
    return;
  }
  require(file.find(path) != nullptr && file.find(path)->value == "7");
}

void turn(const ConfigFile& original) {
  for (const char* knob : {"loader.workers", "precision.amp"}) {
    ConfigFile file = original;
    try {
      unidle::knobs::set_knob(file, knob, knob[0] == 'l' ? "4" : "bf16");
    } catch (const Error& failure) {
      allow(failure, file);
      require(file.text() == original.text());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static constexpr std::array<const char*, 5> kNames = {"a.yaml", "a.json", "a.toml", "a.ini", "a.py"};
  if (size < 2) {
    return 0;
  }
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  try {
    const ConfigFile file = ConfigFile::from_text(text, kNames[data[0] % kNames.size()]);
    for (const Scalar& scalar : file.scalars()) {
      require(scalar.begin <= scalar.end && scalar.end <= text.size() && scalar.line > 0);
    }
    unidle::knobs::configured(unidle::knobs::recognize(file));
    if (!file.scalars().empty()) {
      edit(file, data[1], "7");
      edit(file, data[1], "wo'r\"d");
      const std::string& path = file.scalars()[data[1] % file.scalars().size()].path;
      const std::size_t dot = path.rfind('.');
      add(file, (dot == std::string::npos ? std::string() : path.substr(0, dot + 1)) + "unidle_new");
    }
    add(file, "unidle_new.key");
    turn(file);
  } catch (const Error& failure) {
    require(failure.code() == ErrorCode::kInput);
  }
  return 0;
}
