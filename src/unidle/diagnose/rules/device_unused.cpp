#include <fmt/format.h>

#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"
#include "unidle/knobs/value.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_device_unused(const Context& context, const Policy&) {
  const Signals& signals = context.signals;
  if (!context.on_cpu && !context.on_gpu) {
    return Missing{context.say("the device that the model runs on")};
  }
  if (context.on_gpu) {
    return Nothing{};
  }
  const auto setting = signals.settings.find("device");
  const bool asked = setting != signals.settings.end() && setting->second.configured &&
                     knobs::plain_value(*setting->second.configured).starts_with("cuda");
  if (!asked && !signals.gpus) {
    return Missing{context.say("how many GPUs this machine has")};
  }
  if (!asked && *signals.gpus == 0) {
    return Nothing{};
  }
  Finding finding;
  finding.severity = Severity::kCritical;
  finding.where = detail::where_set(context, "device");
  finding.evidence.push_back("the model runs on the CPU");
  if (signals.gpus.value_or(0) > 0) {
    finding.evidence.push_back(context.say("GPUs that this machine has: {}", *signals.gpus));
  }
  if (asked) {
    finding.evidence.push_back(context.say("the configuration asks for {}", *setting->second.configured));
  }
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
      .topic = "the device it runs on",
      .explanation =
          "A torch without CUDA, a forgotten .to(device) or a job without a GPU falls back to the CPU without a word. "
          "Nothing else "
          "that can be tuned comes near the loss, so this leads whenever it fires.",
      .thresholds = "None: it is so or it is not.",
      .needs = "the device of the model, and the GPUs of the machine or the configured device",
      .proposes = "device",
      .evaluate = evaluate_device_unused,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
