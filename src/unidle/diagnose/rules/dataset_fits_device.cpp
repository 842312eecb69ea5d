#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/copies.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_dataset_fits_device(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (context.on_cpu) {
    return Missing{"device memory (the device is a CPU)"};
  }
  if (!signals.loader || !signals.loader->in_memory_bytes) {
    return Missing{"how large the dataset is in memory"};
  }
  if (!signals.gpu.memory_bytes || !signals.gpu_memory_used) {
    return Missing{"device memory use"};
  }
  if (!context.epochs || !context.transfer) {
    return Missing{context.transfer ? "how many passes over the data the run made" : context.no_steps};
  }
  const double free =
      static_cast<double>(*signals.gpu.memory_bytes) * std::max(0.0, policy.memory_target - *signals.gpu_memory_used);
  // Non-blocking copies take no host time; in the compute stream they take device time.
  const double in_line = context.behind ? detail::compute_stream_copy_share(context, policy).value_or(0) : 0;
  const double copying = std::max(*context.transfer, in_line);
  const auto bytes = static_cast<double>(*signals.loader->in_memory_bytes);
  if (bytes > free || *context.epochs <= policy.min_epochs || copying < policy.warning_share ||
      detail::effective_on(context, "data.on_device").value_or(false)) {
    return Nothing{};
  }
  Finding finding = detail::of_share(copying, policy);
  finding.where = detail::where_loader(context, "data.on_device");
  finding.evidence = {
      context.say("the dataset takes {} and {} of device memory are free", detail::format_noted_bytes(bytes),
                  detail::format_noted_bytes(free)),
      context.say("it was copied to the device {} times; copies take {} of the wall time",
                  format_number(*context.epochs), format_share(copying)),
  };
  finding.fixes.push_back(
      detail::make_fix(context, "data.on_device", true, "copy the tensors to the device once and index them there"));
  return finding;
}

}  // namespace

const Rule& dataset_fits_device() {
  static const Rule kRule{
      .id = "dataset-fits-device",
      .verdict = Verdict::kTransferBound,
      .title = "The whole dataset would fit in device memory",
      .topic = "data on the device",
      .explanation =
          "A dataset of tensors that fits beside the model in device memory need not be copied again batch by batch, "
          "epoch after epoch: on the device a batch is one indexing operation.",
      .thresholds =
          "The dataset at most what is free below memory_target (80 %) of device memory, more than one pass, copies "
          "from warning_share (10 %) of the wall time: the host's wait for them, or what their bytes take in the "
          "stream that computes.",
      .needs =
          "the size of the dataset in memory, device memory and its use, passes over the data, step times with their "
          "copies",
      .proposes = "data.on_device",
      .evaluate = evaluate_dataset_fits_device,
      .counts = Counts::kHostTime,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
