#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_data_parallel_legacy(const Context& context, const Policy&) {
  if (!context.signals.parallel) {
    return Missing{"how the model is spread over devices"};
  }
  if (*context.signals.parallel != "data_parallel" || context.on_cpu) {
    return Nothing{};  // without GPUs it calls the model itself
  }
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.where = detail::place(context.signals.model_where);
  finding.evidence.push_back(context.say("the model is wrapped in DataParallel"));
  if (context.signals.gpus.value_or(0) > 1) {
    finding.evidence.push_back(context.say("this machine has {} GPUs", *context.signals.gpus));
  }
  return finding;
}

}  // namespace

const Rule& data_parallel_legacy() {
  static const Rule kRule{
      .id = "data-parallel-legacy",
      .verdict = Verdict::kComputeBound,
      .title = "DataParallel instead of DistributedDataParallel",
      .topic = "use of DataParallel",
      .explanation =
          "torch.nn.DataParallel runs all devices from one Python process: every step it copies the model to each "
          "device, scatters the batch and gathers the results on the first one. DistributedDataParallel has one "
          "process a device and overlaps the exchange of gradients with the backward pass.",
      .thresholds = "None: it is so or it is not.",
      .needs = "how the model is wrapped",
      .proposes = "use DistributedDataParallel and start it with torchrun",
      .evaluate = evaluate_data_parallel_legacy,
      .counts = Counts::kOther,
      .sentence = "Your run uses DataParallel, which drives all GPUs from one Python process",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
