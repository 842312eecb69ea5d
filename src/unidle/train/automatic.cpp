#include "unidle/train/automatic.h"

#include "unidle/train/device_facts.h"

namespace unidle::train {

namespace {

constexpr int kFirstWithBf16 = 8;  // major compute capability: Ampere

bool has_bf16_units(at::Device device) {
  const auto facts = device_facts(device);
  return facts && facts->major >= kFirstWithBf16;
}

}  // namespace

Config chosen_on(at::Device device, const Config& config) {
  Config chosen = config;
  if (config.text("precision.amp") == "auto") {
    chosen.choose("precision.amp", has_bf16_units(device) ? "bf16" : "off");
  }
  if (config.text("compile.mode") == "auto") {
    chosen.choose("compile.mode", device.is_cuda() ? "graph" : "off");
  }
  if (device.is_cuda() && config.integer("train.samples_on_gpu") > 0 &&
      config.location("train.samples") != Config::kCommandLine) {
    chosen.choose("train.samples", config.text("train.samples_on_gpu"));
  }
  return chosen;
}

}  // namespace unidle::train
