#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_device_shared(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (context.on_cpu && signals.gpus.value_or(0) == 0) {
    return Missing{"processes on the device (the device is a CPU)"};
  }
  if (!signals.gpu.shared) {
    return Missing{"other processes on the device"};
  }
  if (*signals.gpu.shared < policy.shared) {
    return Nothing{};
  }
  Finding finding;
  finding.severity = context.on_gpu ? Severity::kWarning : Severity::kInfo;
  finding.evidence.push_back(context.say(
      "other processes held memory of the device for {} of the training, {} on average",
      format_share(*signals.gpu.shared), detail::format_noted_bytes(signals.gpu.foreign_bytes.value_or(0))));
  if (signals.device_busy && context.on_gpu) {
    finding.evidence.push_back(context.say("the device was busy {} of the time, with the work of all of them",
                                           format_share(*signals.device_busy)));
  }
  return finding;
}

}  // namespace

const Rule& device_shared() {
  static const Rule kRule{
      .id = "device-shared",
      .verdict = Verdict::kComputeBound,
      .title = "Other processes use the same device",
      .topic = "device to itself",
      .explanation =
          "Kernels of several processes take turns on one device, so each gets a part of it, and its utilisation says "
          "nothing about this run alone.",
      .thresholds =
          "Other processes on the device in shared (50 %) of the readings. A warning without a share, because nothing "
          "shows how much they took.",
      .needs = "the processes that the driver lists for the device",
      .proposes = "give the run a device of its own, or a share by MIG or MPS",
      .evaluate = evaluate_device_shared,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} is used by other processes too",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
