#include "unidle/knobs/framework_calls.h"

#include <algorithm>

namespace unidle::knobs {

namespace {

std::vector<FrameworkCall> table_of_calls() {
  return {
      {.source = "transformers 5.24.0, transformers/training_args.py; trl 1.16.0, trl/trainer/*_config.py",
       .packages = {"transformers", "trl"},
       .functions = {"TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig",
                     "KTOConfig", "RewardConfig", "RLOOConfig"},
       .arguments = {{"loader.workers", "", "dataloader_num_workers"},
                     {"loader.prefetch_factor", "", "dataloader_prefetch_factor"},
                     {"loader.persistent_workers", "", "dataloader_persistent_workers"},
                     {"loader.pin_memory", "", "dataloader_pin_memory"},
                     {"batch.size", "", "per_device_train_batch_size"},
                     {"batch.accumulation", "", "gradient_accumulation_steps"},
                     {"precision.amp", "bf16", "bf16", "True"},
                     {"precision.amp", "fp16", "fp16", "True"},
                     {"precision.tf32", "", "tf32"},
                     {"compile.mode", "default", "torch_compile", "True"},
                     {"compile.mode", "reduce-overhead", "torch_compile_mode", "\"reduce-overhead\""},
                     {"compile.mode", "max-autotune", "torch_compile_mode", "\"max-autotune\""},
                     {"optimizer.fused", "true", "optim", "\"adamw_torch_fused\""},
                     {"grad.checkpointing", "", "gradient_checkpointing"},
                     {"metrics.interval", "", "logging_steps"}}},
      {.source =
           "lightning 2.6.6, lightning/pytorch/trainer/trainer.py, lightning/fabric/plugins/precision/precision.py",
       .packages = {"lightning", "pytorch_lightning"},
       .functions = {"Trainer"},
       .arguments = {{"precision.amp", "bf16", "precision", "\"bf16-mixed\""},
                     {"precision.amp", "fp16", "precision", "\"16-mixed\""},
                     {"batch.accumulation", "", "accumulate_grad_batches"},
                     {"cudnn.benchmark", "", "benchmark"},
                     {"metrics.interval", "", "log_every_n_steps"}}},
      {.source = "accelerate 1.15.0, accelerate/accelerator.py",
       .packages = {"accelerate"},
       .functions = {"Accelerator"},
       .arguments = {{"precision.amp", "bf16", "mixed_precision", "\"bf16\""},
                     {"precision.amp", "fp16", "mixed_precision", "\"fp16\""},
                     {"batch.accumulation", "", "gradient_accumulation_steps"}}},
  };
}

}  // namespace

const FrameworkArgument* FrameworkCall::find(std::string_view knob, const Value& value) const {
  const auto found = std::find_if(arguments.begin(), arguments.end(), [&](const FrameworkArgument& each) {
    return each.knob == knob && (each.value.empty() || each.value == value.to_text());
  });
  return found == arguments.end() ? nullptr : &*found;
}

const std::vector<FrameworkCall>& framework_calls() {
  static const std::vector<FrameworkCall> kCalls = table_of_calls();
  return kCalls;
}

}  // namespace unidle::knobs
