// What wrote a configuration, by keys that only it has.
#include <algorithm>
#include <array>
#include <set>

#include "unidle/knobs/detail/words.h"
#include "unidle/knobs/recognize.h"

namespace unidle::knobs {

namespace {

/// A framework is told by `least` of these keys, at whatever depth. The first that fits is taken, so that the more
/// specific stand before those they build on.
struct Signature {
  std::string_view framework;
  int least;
  std::string_view keys;
};
constexpr std::array<Signature, 17> kSignatures = {{
    {"ultralytics", 2, "imgsz lr0 lrf close_mosaic nbs mosaic copy_paste warmup_bias_lr"},
    {"detectron2", 2, "IMS_PER_BATCH BASE_LR _BASE_ META_ARCHITECTURE NUM_WORKERS EVAL_PERIOD WARMUP_ITERS"},
    {"mmengine", 2,
     "train_dataloader optim_wrapper train_cfg param_scheduler default_hooks val_evaluator samples_per_gpu "
     "workers_per_gpu runner optimizer_config lr_config checkpoint_config"},
    {"gpt-neox", 2, "pipe_parallel_size pipe-parallel-size model_parallel_size train_iters pos_emb lr_decay_iters"},
    {"axolotl", 2, "base_model micro_batch_size sequence_len sample_packing flash_attention lora_r adapter"},
    {"accelerate", 2, "compute_environment distributed_type num_processes machine_rank main_training_function"},
    {"huggingface", 1,
     "per_device_train_batch_size per_device_eval_batch_size dataloader_num_workers dataloader_pin_memory"},
    {"deepspeed", 1, "train_micro_batch_size_per_gpu zero_optimization zero_allow_untested_optimizer"},
    {"composer", 2,
     "device_train_microbatch_size device_eval_batch_size global_train_batch_size max_duration train_loader "
     "eval_loader fsdp_config"},
    {"torchtitan", 2,
     "local_batch_size data_parallel_shard_degree tensor_parallel_degree dump_folder hf_assets_path save_tb_folder"},
    {"torchtune", 1, "_component_"},
    {"lightning", 2,
     "seed_everything class_path init_args accumulate_grad_batches check_val_every_n_epoch num_sanity_val_steps "
     "log_every_n_steps default_root_dir gradient_clip_val enable_checkpointing strategy sync_batchnorm"},
    {"timm", 3,
     "aa reprob remode drop_path smoothing mixup cutmix sched warmup_epochs cooldown_epochs model_ema crop_pct "
     "warmup_lr min_lr decay_epochs mean std"},
    {"monai", 2, "bundle_root train#dataset train#trainer _requires_ _disabled_"},
    {"hydra", 1, "_target_ _partial_ _recursive_"},
    {"hydra", 2, "defaults hydra override submitit"},
    {"unidle", 1, "workload"},
}};

}  // namespace

std::string framework_of(const ConfigFile& file) {
  std::set<std::string> keys;
  std::size_t own = 0;
  for (const Scalar& scalar : file.scalars()) {
    own += find_knob(scalar.path) != nullptr;
    for (std::string& key : detail::keys_of(scalar.path)) {
      keys.insert(std::move(key));
    }
  }
  if (keys.contains("workload") && own > 0) {
    return "unidle";
  }
  for (const Signature& signature : kSignatures) {
    int found = 0;
    std::string_view rest = signature.keys;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      found += keys.contains(std::string(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (found >= signature.least) {
      return std::string(signature.framework);
    }
  }
  const bool interpolates = std::any_of(file.scalars().begin(), file.scalars().end(), [](const Scalar& scalar) {
    return scalar.value.find("${") != std::string::npos;
  });
  return interpolates ? "hydra" : own > 2 ? "unidle" : "pytorch";
}

}  // namespace unidle::knobs
