#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"
#include "unidle/knobs/same_value.h"

namespace unidle::diagnose::rules {

namespace {

struct Asked {
  bool gpu = false;              // the command or a configuration file asks for one
  std::vector<std::string> cpu;  // in words: what asks for the CPU in this run
};

/// Words of the command and variables are choices for this run; defaults of a file or program may be an oversight.
Asked asked_of(const Context& context) {
  Asked asked;
  const auto setting = context.signals.settings.find("device");
  if (setting == context.signals.settings.end()) {
    return asked;
  }
  const account::KnobReading& device = setting->second;
  asked.gpu = device.configured && knobs::plain_value(*device.configured).starts_with("cuda");
  const bool by_word = device.configured_at.find(':') == std::string::npos && !device.configured_at.empty();
  if (device.configured && !asked.gpu && by_word) {
    asked.cpu.push_back(context.say("the command asks for the CPU ({})", device.configured_at));
  }
  for (const auto& [variable, value] : device.environment) {
    if (std::string said = context.say("{} hides every GPU from the program", variable);
        std::find(asked.cpu.begin(), asked.cpu.end(), said) == asked.cpu.end()) {
      asked.cpu.push_back(std::move(said));
    }
  }
  return asked;
}

Evaluation evaluate_device_unused(const Context& context, const Policy&) {
  const Signals& signals = context.signals;
  if (!context.on_cpu && !context.on_gpu) {
    return Missing{context.say("the device that the model runs on")};
  }
  if (context.on_gpu && !signals.idle_gpus.empty()) {
    return Missing{context.say("whether GPUs that did nothing were given to this run")};
  }
  if (context.on_gpu) {
    return Nothing{};
  }
  const Asked asked = asked_of(context);
  if (!asked.gpu && !signals.gpus) {
    return Missing{context.say("how many GPUs this machine has")};
  }
  if (!asked.gpu && *signals.gpus == 0) {
    return Nothing{};
  }
  Finding finding;
  finding.severity = asked.gpu || asked.cpu.empty() ? Severity::kCritical : Severity::kInfo;
  finding.where = detail::where_set(context, "device");
  finding.evidence.push_back("the model runs on the CPU");
  if (signals.gpus.value_or(0) > 0) {
    finding.evidence.push_back(context.say("GPUs that this machine has: {}", *signals.gpus));
  }
  if (asked.gpu) {
    finding.evidence.push_back(context.say("the configuration asks for {}", *signals.settings.at("device").configured));
  }
  finding.evidence.insert(finding.evidence.end(), asked.cpu.begin(), asked.cpu.end());
  finding.fixes.push_back(detail::make_fix(context, "device", "cuda",
                                           signals.gpus == 0
                                               ? "the GPU that was asked for is not visible: check the driver, "
                                                 "CUDA_VISIBLE_DEVICES and the job's request"
                                               : "move the model and its batches to the GPU, with a torch that has "
                                                 "CUDA"));
  return finding;
}

}  // namespace

const Rule& device_unused() {
  static const Rule kRule{
      .id = "device-unused",
      .verdict = Verdict::kDeviceUnused,
      .title = "A GPU is there, or was asked for, and the model runs on the CPU",
      .topic = "choice of device",
      .explanation =
          "A torch without CUDA, a forgotten .to(device) or a job without a GPU falls back to the CPU without a word. "
          "Nothing else that can be tuned comes near the loss, so this leads whenever it fires, unless the CPU was "
          "chosen for this run.",
      .thresholds =
          "None: it is so or it is not. A hint where nobody asks for a GPU and this run asks for the CPU: by a word "
          "of the command (--device cpu) or a variable that hides every GPU (CUDA_VISIBLE_DEVICES empty or -1). A "
          "file that says cpu may be an oversight.",
      .needs = "the device of the model, and the GPUs of the machine or the configured device",
      .proposes = "device",
      .evaluate = evaluate_device_unused,
      .counts = Counts::kOther,
      .leads = 4,
      .explains = {Symptom::kUseOfDevice},
      .told = &Signals::told_of_idle_device,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
