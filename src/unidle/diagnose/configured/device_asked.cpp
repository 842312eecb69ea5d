#include "unidle/diagnose/configured/device_asked.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "unidle/base/numbers.h"
#include "unidle/diagnose/configured/argument_words.h"
#include "unidle/knobs/same_value.h"
#include "unidle/telemetry/gpu.h"

namespace unidle::diagnose {

namespace {

constexpr const char* kDevice = "device";

/// "cpu" or "cuda", without its number: a launcher gives each process a different one. Nothing for values that may mean
/// either (auto), and for other devices.
std::optional<std::string> device_value(std::string_view text) {
  const std::string plain = knobs::plain_value(text);
  const std::string kind = plain.substr(0, plain.find(':'));
  return kind == "cpu" || kind == "cuda" ? std::optional(kind) : std::nullopt;
}

/// True when all sections around the key concern the whole run: ema or offload_optimizer have devices of their own.
bool is_of_run(std::string_view key) {
  static constexpr std::array<std::string_view, 20> kSections = {
      "model",  "train",  "training", "trainer", "run",      "runtime", "engine", "experiment", "exp",  "general",
      "common", "global", "main",     "system",  "hardware", "compute", "config", "cfg",        "args", "settings"};
  const std::size_t end = key.find_last_of("./");
  if (end == std::string_view::npos) {
    return true;
  }
  const std::string_view section = key.substr(0, end);
  return std::count(kSections.begin(), kSections.end(), argument_name(section)) > 0 && is_of_run(section);
}

bool names_device(std::string_view key) {
  const std::string name = argument_name(key);
  return (name == kDevice || name == "accelerator") && is_of_run(key);
}

/// True for a flag that selects the CPU, unless the next word negates it (--no_cuda False) or is a number of CPUs
/// (--cpu 8).
bool wants_cpu(std::string_view flag, std::string_view behind) {
  static constexpr std::array<std::string_view, 5> kFlags = {"cpu", "use_cpu", "no_cuda", "no_gpu", "disable_cuda"};
  const bool is_flag = flag.starts_with("--") && std::count(kFlags.begin(), kFlags.end(), argument_name(flag)) > 0;
  const std::string value = knobs::plain_value(behind);
  return is_flag && (behind.empty() || value != "false") && !parse_number<double>(value);
}

/// Collects requests; conflicting ones give nothing.
class DeviceRequests {
 public:
  void add(std::string value, std::string where) {
    differ_ = differ_ || (said_ && said_->value != value);
    said_ = record::Setting{kDevice, std::move(value), "configured", std::move(where)};
  }
  std::optional<record::Setting> get() const { return differ_ ? std::nullopt : said_; }

 private:
  std::optional<record::Setting> said_;
  bool differ_ = false;
};

}  // namespace

std::optional<record::Setting> device_of_command(const std::vector<std::string>& command) {
  DeviceRequests said;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string behind = i + 1 < command.size() ? command[i + 1] : "";
    if (wants_cpu(word, behind)) {
      said.add("cpu", word);
    } else if (names_device(name) && (equals != std::string::npos || name.starts_with("--"))) {
      if (auto value = device_value(equals == std::string::npos ? behind : word.substr(equals + 1))) {
        said.add(std::move(*value), name);
      }
    }
  }
  return said.get();
}

std::optional<record::Setting> device_of_file(const knobs::ConfigFile& file, const std::string& name) {
  DeviceRequests said;
  for (const knobs::Scalar& scalar : file.scalars()) {
    if (auto value = names_device(scalar.path) ? device_value(scalar.value) : std::nullopt) {
      said.add(std::move(*value), fmt::format("{}:{}", name, scalar.line));
    }
  }
  return said.get();
}

std::vector<record::Setting> gpus_hidden_by(const std::vector<std::string>& environment) {
  std::vector<record::Setting> found;
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    if (equals != std::string::npos && telemetry::shows_some_gpus(name) &&
        telemetry::hides_every_gpu(std::string_view(entry).substr(equals + 1))) {
      found.push_back({kDevice, "cpu", "environment", name});
    }
  }
  return found;
}

}  // namespace unidle::diagnose
