#include "unidle/diagnose/detail/wait_for_batch.h"

#include <algorithm>

namespace unidle::diagnose::detail {

namespace {

bool is_of_sampler(const HotLine& line) { return line.role == "train" && line.phase == "indices"; }

}  // namespace

std::optional<double> made_in_wait(const Context& context) {
  const Signals& signals = context.signals;
  const bool elsewhere = signals.loader && (signals.loader->by_thread == true || signals.loader->of_package());
  if (context.workers != 0 || elsewhere || !signals.samples || signals.samples->count < 1 || !signals.batch_samples ||
      context.input_s.value_or(0) <= 0) {
    return std::nullopt;
  }
  const SampleFacts& samples = *signals.samples;
  const double each_s = (samples.total_s + samples.collate_s.value_or(0)) / static_cast<double>(samples.count);
  const double made_s = each_s * static_cast<double>(*signals.batch_samples) * signals.micro_batches.value_or(1);
  return std::min(1.0, made_s / *context.input_s);
}

double wait_for_samples(const Context& context) { return *context.steady_input * made_in_wait(context).value_or(1); }

std::optional<double> step_with_workers(const Context& context, double made_s) {
  const auto best_s = overlapped_step_s(context, made_s);
  return best_s ? std::optional(*best_s + std::max(0.0, *context.input_s - made_s)) : std::nullopt;
}

bool waits_beside_samples(const Context& context, const Policy& policy) {
  return made_in_wait(context).value_or(1) < policy.mostly;
}

bool iterates_for_each_batch(const Signals& signals, const Policy& policy) {
  if (!signals.loader || !signals.loader->iterators || !signals.loader->batches || !signals.loader->in_epoch ||
      !signals.batch_samples) {
    return false;
  }
  const auto iterators = static_cast<double>(*signals.loader->iterators);
  return *signals.loader->in_epoch > *signals.batch_samples && iterators > 1 &&
         iterators >= policy.mostly * static_cast<double>(*signals.loader->batches);
}

std::optional<HotFunction> hot_sampler(const Signals& signals) {
  auto hot = hot_function(signals, is_of_sampler);
  if (!hot) {
    return std::nullopt;
  }
  std::int64_t all = hot->looks;  // of the whole wait, in which its samples are made as well
  for (const HotLine& line : signals.hot) {
    all = std::max(all, is_of_sampler(line) ? line.total : 0);
  }
  const double part = static_cast<double>(hot->looks) / static_cast<double>(all);
  hot->share *= part;
  hot->of_line *= part;
  hot->looks = all;
  return hot;
}

}  // namespace unidle::diagnose::detail
