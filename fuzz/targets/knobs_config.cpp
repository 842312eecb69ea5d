// Any bytes as a configuration file of every format: reading, recognition, edits and new keys. An edit may be refused,
// but it must never change a byte outside the value, and never crash.
#include <array>
#include <cstdio>
#include <string>

#include "fuzz.h"
#include "unidle/knobs/apply.h"
#include "unidle/knobs/config_file.h"
#include "unidle/knobs/recognize.h"

namespace unidle::fuzz::targets {

namespace {

using knobs::ConfigFile;
using knobs::Format;
using knobs::Scalar;

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
      knobs::set_knob(file, knob, knob[0] == 'l' ? knobs::Value(4) : "bf16");
    } catch (const Error& failure) {
      allow(failure, file);
      require(file.text() == original.text());
    }
  }
}

void run_knobs_config(std::string_view bytes) {
  static constexpr std::array<const char*, 4> kNames = {"a.yaml", "a.json", "a.toml", "a.py"};
  if (bytes.size() < 2) {
    return;
  }
  const auto format = static_cast<unsigned char>(bytes[0]);
  const auto choice = static_cast<unsigned char>(bytes[1]);
  const std::string text(bytes.substr(2));
  may_refuse([&] {
    const ConfigFile file = ConfigFile::from_text(text, kNames[format % kNames.size()]);
    for (const Scalar& scalar : file.scalars()) {
      require(scalar.begin <= scalar.end && scalar.end <= text.size() && scalar.line > 0);
    }
    knobs::configured(knobs::recognize(file));
    if (!file.scalars().empty()) {
      edit(file, choice, "7");
      edit(file, choice, "wo'r\"d");
      const std::string& path = file.scalars()[choice % file.scalars().size()].path;
      const std::size_t dot = path.rfind('.');
      add(file, (dot == std::string::npos ? std::string() : path.substr(0, dot + 1)) + "unidle_new");
    }
    add(file, "unidle_new.key");
    turn(file);
  });
}

}  // namespace

const Target& knobs_config() {
  static const Target kTarget = {"knobs_config", run_knobs_config};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
