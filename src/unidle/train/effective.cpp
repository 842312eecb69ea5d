// Reads the knobs in force back from the live objects.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "unidle/train/trainer.h"

namespace unidle::train {

namespace {

const char* text_of(bool value) { return value ? "true" : "false"; }

/// Whether the convolution weights are channels-last; weights in both layouts at once (one channel) do not count.
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
  all["loader.workers"] = std::to_string(config_.integer("loader.workers"));
  all["data.on_device"] = text_of(input_->on_device());
  all["batch.size"] = std::to_string(batch_);
  all["batch.accumulation"] = std::to_string(accumulation_);
  all["precision.amp"] = step_.precision().effective();
  all["compile.mode"] = step_.compile_mode();
  all["layout.channels_last"] = text_of(lies_channels_last(workload_.model()));
  all["optimizer.name"] = step_.optimizer().name();
  all["optimizer.lr"] = config_.text("optimizer.lr");
  all["optimizer.schedule"] = config_.text("optimizer.schedule");
  if (step_.schedule().options().kind == Schedule::Kind::kStep) {
    all["optimizer.decay_steps"] = std::to_string(step_.schedule().options().decay_steps);
    all["optimizer.decay_factor"] = config_.text("optimizer.decay_factor");
  }
  if (const auto* sgd = dynamic_cast<const Sgd*>(&step_.optimizer())) {
    all["optimizer.momentum"] = fmt::format("{}", sgd->momentum());
  }
  all["ema.decay"] = fmt::format("{}", step_.averaged().decay());
  all["train.deterministic"] = text_of(at::globalContext().deterministicAlgorithms());
  all["train.on_nan"] = config_.text("train.on_nan");
  all["optimizer.weight_decay"] = fmt::format("{}", step_.optimizer().weight_decay());
  all["optimizer.fused"] = text_of(step_.optimizer().fused());
  all["optimizer.zero_to_none"] = config_.text("optimizer.zero_to_none");
  all["optimizer.warmup_steps"] = config_.text("optimizer.warmup_steps");
  all["grad.clip_norm"] = config_.text("grad.clip_norm");
  all["metrics.interval"] = config_.text("metrics.interval");
  all["memory.flush_interval"] = config_.text("memory.flush_interval");
  all["validation.interval"] = config_.text("validation.interval");
  if (workload_.held_out() != nullptr) {
    all["validation.batch"] = config_.text("validation.batch");
  }
  all["checkpoint.interval"] = config_.text("checkpoint.interval");
  if (checkpoints_) {
    all["checkpoint.keep"] = config_.text("checkpoint.keep");
  }
  all["train.samples"] = std::to_string(total_);
  all["cpu.threads"] = std::to_string(at::get_num_threads());
  if (options_.numa) {
    all["cpu.numa"] = *options_.numa;
  }
  all["loader.prefetch_factor"] = std::to_string(config_.integer("loader.prefetch_factor"));
  all["loader.persistent_workers"] =
      config_.integer("loader.workers") > 0 ? "true" : config_.text("loader.persistent_workers");
  all["loader.pin_memory"] = text_of(input_->pinned());
  all["transfer.non_blocking"] = text_of(input_->non_blocking());
  const at::Context& context = at::globalContext();
  all["precision.tf32"] = text_of(context.allowTF32CuDNN());
  all["cudnn.benchmark"] = text_of(context.benchmarkCuDNN());
  return all;
}

}  // namespace unidle::train
