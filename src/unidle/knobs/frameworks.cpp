// The table of frameworks. Each row names its source; python/tests/test_framework_words.py parses its words with the
// framework's own parser, if it is installed.
#include "unidle/knobs/framework.h"

namespace unidle::knobs {

namespace {

const std::string kAmp = "precision.amp";

const std::vector<Framework>& table() {
  static const std::vector<Framework> kFrameworks = {
      {.name = "ultralytics",
       .source = "ultralytics 8.4.190, ultralytics/cfg/default.yaml",
       .signatures = {{2, "imgsz lr0 lrf close_mosaic nbs mosaic copy_paste warmup_bias_lr"}}},
      {.name = "detectron2",
       .source = "detectron2 0.6, detectron2/config/defaults.py",
       .signatures = {{2, "IMS_PER_BATCH BASE_LR _BASE_ META_ARCHITECTURE NUM_WORKERS EVAL_PERIOD WARMUP_ITERS"}}},
      {.name = "mmengine",
       .source = "mmengine 0.10.7, mmengine/runner/runner.py (build_dataloader), mmengine/optim/optimizer/amp_*.py",
       .signatures = {{2,
                       "train_dataloader optim_wrapper train_cfg param_scheduler default_hooks val_evaluator "
                       "samples_per_gpu workers_per_gpu runner optimizer_config lr_config checkpoint_config"}},
       .additions = {{"loader.persistent_workers", "persistent_workers", "num_workers"},
                     {"loader.pin_memory", "pin_memory", "num_workers"},
                     {"loader.prefetch_factor", "prefetch_factor", "num_workers"}}},
      {.name = "gpt-neox",
       .source = "gpt-neox ea7aefd8, megatron/neox_arguments/neox_args.py and arguments.py",
       .signatures = {{2,
                       "pipe_parallel_size pipe-parallel-size model_parallel_size model-parallel-size train_iters "
                       "train-iters pos_emb pos-emb lr_decay_iters lr-decay-iters"}},
       .agreements = {{kAmp, "",
                       "precision, fp16 and bf16 have to agree, and DeepSpeed casts the model but not its inputs"}}},
      {.name = "nemo",
       .source = "nemo-toolkit 2.6 (8cfedd72), examples/*/conf, read by Lightning's Trainer",
       .signatures = {{1, "exp_manager megatron_amp_O2"}},
       .vocabulary = {{kAmp,
                       "precision",
                       {"32", "bf16-mixed", "16-mixed", "32-true", "64-true", "bf16-true", "16-true"}}}},
      {.name = "litgpt-pretrain",
       .source = "litgpt 0.5.13, litgpt/pretrain.py: it refuses fp16",
       .signatures = {{2, "initial_checkpoint_dir tokenizer_dir"}},
       .vocabulary = {{kAmp, "precision", {"bf16-true", "bf16-mixed", "32-true"}}}},
      {.name = "litgpt",
       .source = "litgpt 0.5, litgpt/args.py and litgpt/finetune/lora.py",
       .signatures = {{3, "checkpoint_dir out_dir save_interval micro_batch_size quantize lr_warmup_steps lora_r"}},
       .vocabulary = {{kAmp, "precision", {"bf16-true", "bf16-mixed", "16-mixed", "16-true", "32-true"}}}},
      {.name = "axolotl",
       .source = "axolotl 0.19.0, axolotl/utils/schemas/config.py",
       .signatures = {{2, "base_model micro_batch_size sequence_len sample_packing flash_attention lora_r adapter"}},
       .additions = {{"loader.workers", "dataloader_num_workers", "micro_batch_size"},
                     {"loader.prefetch_factor", "dataloader_prefetch_factor", "dataloader_num_workers"},
                     {"loader.pin_memory", "dataloader_pin_memory", "micro_batch_size"},
                     {"precision.tf32", "tf32", "micro_batch_size"},
                     {kAmp, "bf16", "micro_batch_size", Meaning::kMeansBf16},
                     {"compile.mode", "torch_compile", "micro_batch_size", Meaning::kSwitch}},
       .agreements = {{kAmp, "deepspeed", "DeepSpeed's own configuration has to agree"}}},
      {.name = "speechbrain",
       .source = "speechbrain 1.1.2, speechbrain/utils/autocast.py (AMPConfig)",
       .signatures = {{2,
                       "__set_seed train_logger train_dataloader_opts valid_dataloader_opts test_dataloader_opts "
                       "epoch_counter checkpointer number_of_epochs dataloader_options opt_class dataloader_opts"}},
       .vocabulary = {{kAmp, "precision", {"fp32", "fp16", "bf16"}}}},
      {.name = "accelerate",
       .source = "accelerate 1.15.0, accelerate/utils/dataclasses.py (PrecisionType)",
       .signatures = {{2, "compute_environment distributed_type num_processes machine_rank main_training_function"}},
       .vocabulary = {{kAmp, "mixed_precision", {"no", "fp16", "bf16", "fp8"}}},
       .agreements = {{kAmp, "deepspeed_config_file",
                       "DeepSpeed's own configuration sets it, and accelerate refuses both"}}},
      {.name = "huggingface",
       .source = "transformers 5.24.0, transformers/training_args.py (TrainingArguments)",
       .signatures = {{1,
                       "per_device_train_batch_size per_device_eval_batch_size dataloader_num_workers "
                       "dataloader_pin_memory"}},
       .additions = {{"loader.workers", "dataloader_num_workers", "per_device_train_batch_size"},
                     {"loader.prefetch_factor", "dataloader_prefetch_factor", "dataloader_num_workers"},
                     {"loader.persistent_workers", "dataloader_persistent_workers", "dataloader_num_workers"},
                     {"precision.tf32", "tf32", "per_device_train_batch_size"},
                     {kAmp, "bf16", "per_device_train_batch_size", Meaning::kMeansBf16},
                     {"compile.mode", "torch_compile", "per_device_train_batch_size", Meaning::kSwitch}},
       .agreements = {{kAmp, "deepspeed", "DeepSpeed's own configuration has to agree"}},
       .weight_formats = "torch_dtype dtype"},
      {.name = "deepspeed",
       .source = "deepspeed 0.19.8, deepspeed/runtime/config.py, deepspeed/runtime/precision_config.py",
       .signatures = {{1, "train_micro_batch_size_per_gpu zero_optimization zero_allow_untested_optimizer"}},
       .agreements = {{kAmp, "", "DeepSpeed casts the model but not its inputs: the program has to cast them"}}},
      {.name = "olmo",  // its configurations look like composer's, but it has no gradient scaler: no fp16
       .source = "ai2-olmo 0.6.0, olmo/config.py (autocast_precision), olmo/train.py",
       .signatures = {{2,
                       "save_interval_unsharded save_interval_ephemeral gen1_gc_interval sharded_checkpointer "
                       "remote_save_folder metrics_log_interval max_grad_norm_ratio reset_optimizer_state"}},
       .vocabulary = {{kAmp, "precision", {"fp32", "amp_bf16"}}}},
      {.name = "composer",  // llm-foundry accepts the same words
       .source = "composer 0.32.1, composer/core/precision.py (Precision)",
       .signatures = {{2,
                       "device_train_microbatch_size device_eval_batch_size global_train_batch_size max_duration "
                       "train_loader eval_loader fsdp_config"}},
       .vocabulary = {{kAmp, "precision", {"fp32", "amp_fp16", "amp_bf16", "amp_fp8"}}}},
      {.name = "torchtitan",
       .source = "torchtitan 0.3.0, torchtitan/config/configs.py",
       .signatures = {{2,
                       "local_batch_size data_parallel_shard_degree tensor_parallel_degree dump_folder "
                       "hf_assets_path save_tb_folder"}},
       .vocabulary = {{kAmp, "mixed_precision_param", {"bfloat16", "float32"}},
                      {kAmp, "dtype", {"bfloat16", "float32"}}},
       .additions = {{"compile.mode", "compile.enable", "", Meaning::kSwitch}}},
      {.name = "torchtune",
       .source = "torchtune 0.6.1, recipes/full_finetune_*.py: fp16 is refused",
       .signatures = {{1, "_component_"}},
       .vocabulary = {{kAmp, "dtype", {"fp32", "bf16"}}}},
      {.name = "opennmt",
       .source = "OpenNMT-py 3.5.1, onmt/opts.py",
       .signatures = {{3,
                       "src_vocab tgt_vocab path_src path_tgt save_model train_steps valid_steps accum_count "
                       "report_every gpu_ranks transforms"}},
       .vocabulary = {{kAmp, "model_dtype", {"fp32", "fp16"}}}},
      {.name = "espnet",
       .source = "espnet 202511, espnet2/tasks/abs_task.py (--train_dtype, --use_amp)",
       .signatures = {{3,
                       "batch_type accum_grad keep_nbest_models best_model_criterion val_scheduler_criterion "
                       "encoder_conf decoder_conf model_conf optim_conf"}},
       .vocabulary = {{kAmp, "train_dtype", {"float32", "float16", "float64"}}}},
      {.name = "kohya",
       .source = "sd-scripts 0.10.1 (48d368fa), library/train_util.py (--mixed_precision)",
       .signatures = {{2,
                       "network_module network_dim network_alpha save_precision caption_extension "
                       "max_data_loader_n_workers pretrained_model_name_or_path max_train_steps max_train_epochs"}},
       .vocabulary = {{kAmp, "mixed_precision", {"no", "fp16", "bf16"}}},
       .agreements = {{kAmp, "full_bf16", "sd-scripts refuses full_bf16 with another mixed_precision than bf16"},
                      {kAmp, "full_fp16", "sd-scripts refuses full_fp16 with another mixed_precision than fp16"}}},
      {.name = "fairseq",
       .source = "fairseq 0.12.2, fairseq/dataclass/configs.py",
       .signatures = {{3,
                       "ddp_backend distributed_world_size log_format update_freq warmup_updates tensorboard_logdir "
                       "skip_invalid_size_inputs_valid_test no_epoch_checkpoints keep_interval_updates "
                       "save_interval_updates validate_interval_updates max_update sentence_avg"}}},
      {.name = "lightning",
       .source = "pytorch-lightning 2.6.6, lightning_fabric/plugins/precision/precision.py; 32, 16 and bf16 since 1.6",
       .signatures = {{2,
                       "seed_everything class_path init_args accumulate_grad_batches check_val_every_n_epoch "
                       "num_sanity_val_steps log_every_n_steps default_root_dir gradient_clip_val "
                       "enable_checkpointing strategy sync_batchnorm"}},
       .vocabulary = {{kAmp,
                       "precision",
                       {"32", "16", "bf16", "bf16-mixed", "16-mixed", "32-true", "bf16-true", "16-true", "64",
                        "64-true", "transformer-engine", "transformer-engine-float16"}}},
       .additions = {{"cudnn.benchmark", "benchmark", "max_epochs"}},
       .agreements = {{"optimizer.fused", "gradient_clip_val",
                       "Lightning refuses to clip gradients of a fused optimiser in mixed precision"}}},
      {.name = "animate-anyone",  // and its derivatives: Hallo, EchoMimic, Champ
       .source = "Moore-AnimateAnyone of 2024, train_stage_1.py; Hallo 2, scripts/train_stage1.py",
       .signatures = {{3, "weight_dtype uncond_ratio snr_gamma enable_zero_snr noise_offset"}},
       .agreements = {{kAmp, "weight_dtype",
                       "the program casts its models to weight_dtype itself, and the two have to agree"}}},
      {.name = "timm",
       .source = "timm 1.0.31; its train.py at aa4b5850 (--amp-dtype)",
       .signatures = {{3,
                       "aa reprob remode drop_path smoothing mixup cutmix sched warmup_epochs cooldown_epochs "
                       "model_ema crop_pct warmup_lr min_lr decay_epochs mean std"}},
       .vocabulary = {{kAmp, "amp_dtype", {"float16", "bfloat16"}}}},
      {.name = "monai",
       .source = "monai 1.6.1, monai/bundle/config_parser.py",
       .signatures = {{2, "bundle_root train#dataset train#trainer _requires_ _disabled_"}}},
      {.name = "hydra",
       .source = "hydra-core 1.3.8",
       .signatures = {{1, "_target_ _partial_ _recursive_"}, {2, "defaults hydra override submitit"}}},
  };
  return kFrameworks;
}

}  // namespace

const std::vector<Framework>& all_frameworks() { return table(); }

}  // namespace unidle::knobs
