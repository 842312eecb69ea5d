// The knobs as they are in force.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "unidle/train/trainer.h"

namespace unidle::train {

namespace {

const char* text_of(bool value) { return value ? "true" : "false"; }

/// Whether the convolution weights lie channels-last; weights that are both (one channel) say nothing.
bool lies_channels_last(const torch::nn::Module& model) {
  for (const at::Tensor& parameter : model.parameters()) {
    if (parameter.dim() == 4 && !parameter.is_contiguous()) {
      return parameter.is_contiguous(at::MemoryFormat::ChannelsLast);
    }
  }
  return false;
}

}  // namespace

Effective Trainer::effective() const {
  Effective all = workload_.effective();
  all["seed"] = config_.text("seed");
  all["device"] = device_.is_cpu() ? "cpu" : "cuda";
  all["loader.workers"] = std::to_string(loader_options_.workers);
  all["batch.size"] = std::to_string(batch_);
  all["batch.accumulation"] = std::to_string(accumulation_);
  all["precision.amp"] = precision_.effective();
  all["compile.mode"] = "off";
  all["layout.channels_last"] = text_of(lies_channels_last(workload_.model()));
  all["optimizer.lr"] = config_.text("optimizer.lr");
  all["optimizer.weight_decay"] = fmt::format("{}", optimizer_.weight_decay());
  all["optimizer.fused"] = text_of(optimizer_.fused());
  all["optimizer.zero_to_none"] = config_.text("optimizer.zero_to_none");
  all["optimizer.warmup_steps"] = config_.text("optimizer.warmup_steps");
  all["grad.clip_norm"] = config_.text("grad.clip_norm");
  all["metrics.interval"] = config_.text("metrics.interval");
  all["validation.interval"] = config_.text("validation.interval");
  all["checkpoint.interval"] = config_.text("checkpoint.interval");
  all["train.samples"] = std::to_string(total_);
  all["cpu.threads"] = std::to_string(at::get_num_threads());
  all["loader.prefetch_factor"] = std::to_string(loader_options_.prefetch);
  all["loader.persistent_workers"] = loader_options_.workers > 0 ? "true" : config_.text("loader.persistent_workers");
  all["loader.pin_memory"] = text_of(pinned_ != nullptr);
  all["transfer.non_blocking"] = text_of(!device_.is_cpu() && config_.flag("transfer.non_blocking"));
  const at::Context& context = at::globalContext();
  all["precision.tf32"] = text_of(context.allowTF32CuDNN());
  all["cudnn.benchmark"] = text_of(context.benchmarkCuDNN());
  return all;
}

}  // namespace unidle::train
