// Every threshold that rules use, with its reason and its name in a policy file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

namespace unidle::diagnose {

/// Shares are of the run's wall time without a short start-up, unless noted otherwise. "Own choice" marks judgement
/// rather than measurement.
struct Policy {
  /// Shares of fewer steps are meaningless: the first steps of any run allocate, tune and compile. Own choice.
  std::int64_t min_steps = 5;
  /// Three steps that take this long are enough: what the first one does besides is little of it. Own choice.
  double long_step_s = 2;
  /// A trace with fewer kernels contains no step; its gaps mean nothing. Own choice.
  std::int64_t min_kernels = 10;
  /// Below a tenth of the wall time, a cause is worth at most 1.11x, which is within the spread of repeated short runs
  /// on shared machines. Own choice.
  double warning_share = 0.10;
  /// From here on, a setting that changes nothing but speed is worth a trial: a search tells gains above 3 %. Own
  /// choice.
  double trial_share = 0.05;
  /// From here on, removing the cause alone is worth up to 1.4x. Own choice.
  double critical_share = 0.30;

  /// Below this, the gain of more workers is too small to measure; the finding is a warning at most.
  double min_bound = 1.05;

  /// Workers count as busy from here on; the rest is hand-over to the training thread. Own choice.
  double workers_busy = 0.85;
  /// CPUs that must be free before another worker can help: one worker needs about one CPU.
  double free_cpus = 0.75;

  /// CPUs count as full from here on; samples of a quarter of a second miss the rest. Own choice.
  double cpus_full = 0.85;
  /// Runnable loader threads per CPU: two threads on one CPU already wait half of their time. Own choice between that
  /// and the one to one of a good setting.
  double oversubscribed = 1.5;
  /// Of the CPUs on which the step computes. 26 public programs on two CPUs: 19 and 22 % in those that gained 1.38x and
  /// 1.15x from cheaper samples (FactorVAE, Conv-TasNet), at most 11 % in all others.
  double sample_cpus = 0.15;
  /// This many workers per CPU suffice even where samples mostly wait for a network or a disk. Own choice.
  double workers_per_cpu = 4;
  /// Making batches in the training process must promise this much, because the rest of a step is measured beside busy
  /// workers. Own choice.
  double min_gain_without_workers = 1.15;
  /// The part of a step outside model, optimiser and loader is more than a hint from here on. Below, it is often spread
  /// over many lines. Own choice.
  double between_steps = 0.20;
  /// Stack samples in which Python holds its lock: 25 to 100 % in loops over numbers, samples and embeddings, 12 % in
  /// one over time steps of an LSTMCell of 128, up to 8 % in stacks of layers (torch 2.11 on 2 CPUs). A line without a
  /// loop must be Python's own work. Own choice.
  double interpreted_loop = 0.20;
  double interpreted_line = 0.80;
  /// Of shorter operations the call alone is a large part: 5 to 20 us, depending on the CPU and its load.
  double small_operation_s = 50e-6;
  /// The most that one page fault without I/O costs. Own measurements: 0.9 to 2.4 us on 2 CPUs of a virtual machine,
  /// where the kernel zeroes a page of 4 KiB.
  double page_fault_s = 2.5e-6;
  /// The forward pass of any small model has up to this many operations. Own choice.
  double many_operations = 300;
  /// Several models, views or chunks alone make up to this many calls in a step. Own choice.
  double many_calls = 20;
  /// A longer call of the model computes enough to pay for itself. Own choice.
  double small_call_s = 3e-3;
  /// Attention heads alone take up to this many slices of a large tensor in a step. Own choice.
  double many_slices = 16;
  /// The rate at which a backward pass fills gradients of slices and adds them up, in bytes/s: 5.3 GB/s on two CPUs
  /// (torch 2.11), less where the system has to give fresh memory.
  double filled_per_s = 5e9;
  /// What a program does after its last step is named from here on; below, it is the end of any short run. Own choice.
  double after_training = 0.20;
  /// The same without stack samples that show what it does: to unload its libraries takes a program a second or two,
  /// and several on a busy machine. Own choice.
  double after_training_unseen_s = 10;
  /// Steps become slower from here on: the last fifth against the first one, growing in each fifth. Own choice.
  double slower_steps = 1.5;
  /// The same while other processes use the CPUs.
  double slower_steps_disturbed = 2.5;
  /// One of two ranks that comes last in this share of the exchanges is late; equal ones come last in half each. For
  /// more ranks see late_rank(). Own choice.
  double mostly_last = 0.75;
  /// The part of a step by which a rank has to be late while other processes use the CPUs, which may hold up one of two
  /// equal ranks: 28 % was measured. Own choice.
  double late_disturbed = 0.5;
  /// Fewer losses that are not finite may be steps that a gradient scaler skips. Own choice.
  std::int64_t lasting_losses = 3;
  /// Memory that grows in each fifth of the training, and by at least this many bytes, is growing. Own choice.
  double growing_memory = 256e6;
  /// A machine whose memory is full within this time at that rate needs a person. Own choice.
  double memory_full_within_s = 3600;
  /// Every torch process keeps a few idle threads; pools of OpenMP, BLAS or OpenCV have one thread per visible CPU. Own
  /// choice.
  double many_threads = 8;
  /// CPUs that the job cannot use: half of one, because quotas need not be whole.
  double restricted_cpus = 0.5;
  /// Forward and backward pass, per parameter tensor: below this its operations are too short to be divided among
  /// threads. Two threads gained nothing at 44 us and 1.3x at 115 us (networks of linear layers, torch 2.11).
  double divided_tensor_s = 1e-4;

  /// One row of a table or tensor in memory costs 1-50 us with its Python call (on a 2.5 GHz core: a NumPy row 4 us, a
  /// pandas row by iloc 60 us); decoding even a small picture costs more than this.
  double row_s = 2e-4;
  /// Below this a sample is too cheap to be "slow": a single worker makes 5000 of them a second.
  double slow_sample_s = 2e-4;
  /// Waits come in bursts when a tenth of the steps has this share of them; evenly spread, it would have a tenth.
  double bursts = 0.50;
  /// This many queued batches per worker suffice; torch's default is 2. Own choice.
  std::int64_t deep_prefetch = 16;
  /// Costs of decoding similar files spread by a factor of two or three; ten-fold ones stand out. Own choice.
  double tail_ratio = 8;
  double tail_mean = 1.3;
  /// Waiting limits samples that spend less than this share of their time on a CPU. Own choice.
  double on_cpu = 0.50;
  /// Processes in disk wait per worker, and bytes/s read from storage: below both, nothing waits for a disk. Own
  /// choice; a spinning disk gives 1 MB/s even when it seeks for every 10 kB.
  double disk_wait = 0.25;
  double disk_read_bytes_per_s = 1e6;
  /// Sorting by length leaves padding below this. Own choice.
  double padding = 0.30;
  /// The part of all elements that comes after the longest sequence of its batch. Batches with less are padded to about
  /// that sequence. Own choice.
  double trimmed_padding = 0.10;

  /// Reading a cheaper sample from memory is faster than a cache look-up: hashing the key, finding the entry and
  /// mapping a file take 50-100 us. Ten times that.
  double expensive_sample_s = 1e-3;
  /// Nothing is computed twice before a second epoch begins.
  double min_epochs = 1.0;

  /// From here on, the device is too busy for host waits to be the limit. Own choice.
  double device_full = 0.90;
  /// About one wait per step; logging at intervals gives less.
  double syncs_per_step = 0.9;

  /// The loop itself flushes the allocator when every other step does; below flush_share it costs too little to warn.
  /// Own choice.
  double flushes_per_step = 0.5;
  double flush_share = 0.03;
  /// "Mostly", for copies, bytes or times of two kinds.
  double mostly = 0.50;
  /// Device idle time that nothing else explains; below this it is the usual gap between two steps. Own choice.
  double launch_share = 0.20;
  /// New compilations for the first batches (a last batch, train and eval mode) are normal. Own choice.
  std::int64_t recompiles = 3;
  /// torch._dynamo.config.recompile_limit: beyond it the function runs uncompiled.
  std::int64_t recompile_limit = 8;
  /// cuDNN may benchmark this many shapes without doing so continuously: an epoch's last batch, two crops. Own choice.
  std::int64_t fixed_shapes = 4;
  /// Fused over plain AdamW on one CPU core, torch 2.11: 4.8x with 200 tensors of 64 to 4096 elements, 5.1x with 60 of
  /// 64x64x3x3, 5.3x with 8 of 512x512; rounded down.
  double fused_gain = 4.0;
  /// The part of the run in attention that returns its weights. Without them nn.MultiheadAttention took 1/2.8 of the
  /// time with 784 positions, 1/2.2 with 1024, and the same time with 32 to 197 (two CPUs, torch 2.11, forward and
  /// backward).
  double attention_share = 0.25;

  /// "Far from full", for both memory and time of the device. Own choice; below 70 % of memory the engine's own memory
  /// policy already proposes a larger batch.
  double far_from_full = 0.50;
  /// SM activity at which the device is full, however short its kernels: "0.8 or greater is necessary, but not
  /// sufficient, for effective use of the GPU" (DCGM user guide, profiling metrics). Below half ("likely indicates
  /// ineffective GPU usage", ibid.) far_from_full applies: a loop of tiny kernels has a few percent, while NVML's
  /// utilisation says 100.
  double units_full = 0.80;
  /// The share of a link's raw rate that copies can reach: a packet of 256 bytes has about 24 more. Own choice;
  /// programs reach 80 to 87 %.
  double link_payload = 0.90;
  /// A larger batch may fill memory up to here; the engine proposes a smaller one above 90 %.
  double memory_target = 0.80;
  /// The largest growth that one fix proposes; beyond it, a measured search decides.
  std::int64_t max_batch_growth = 8;
  /// With more input or host wait than this share of the step, a larger batch does not help.
  double batch_max_wait = 0.20;

  /// Peak rate of bf16 or fp16 relative to fp32 code: dense tensor-core peak is twice that of TF32 (A100: 312 and 156
  /// TFLOP/s, NVIDIA A100 data sheet), and far more than plain fp32.
  double precision_gain_cuda = 2.0;
  /// One VDPBF16PS does twice the multiply-adds of an fp32 FMA of the same width (Intel 64 manual, AVX512_BF16).
  double precision_gain_cpu = 2.0;
  /// How many times as long bf16 autocast takes without units for it: 4.6 on a CPU with AVX2 (a transformer), 2.2 with
  /// AVX-512 (oneDNN limited to it), torch 2.11.
  double emulation_loss = 4.0;
  /// How many times as long fp64 takes as fp32: a register holds half as many numbers, and an H100 has half the rate
  /// (67 and 34 TFLOP/s, NVIDIA H100 data sheet). On GPUs for games the loss is larger.
  double double_precision_loss = 2.0;
  /// fp16 tensor cores came with compute capability 7.0, bf16 with 8.0 (CUDA programming guide, table of capabilities).
  int fp16_capability = 7;
  int bf16_capability = 8;
  /// TF32 came with Ampere. Peak rates differ by 8 (A100: 156 and 19.5 TFLOP/s, NVIDIA A100 data sheet); a whole step
  /// gains far less.
  int tf32_capability = 8;
  double tf32_gain = 2.0;
  /// Without convolutions, a smaller model multiplies matrices too small for 16-bit units to matter; the casts cost
  /// what they gain. Own choice.
  std::int64_t low_precision_parameters = 100'000;
  /// Channels-last relative to channels-first on a CPU, forward and backward, torch 2.11 on one AVX2 core: ConvNeXt
  /// blocks with 7x7 depth-wise convolutions 1.35x (the whole superres step of our engine 2x), plain 3x3 networks 1.0x,
  /// because oneDNN reorders those into its own blocks. So: a share for depth-wise, a hint for plain ones.
  double layout_gain_depthwise = 1.35;

  /// Share of training plus validation, not of wall time. A test set of a sixth of the data that is validated after
  /// each epoch, without gradients, takes about 0.06; published logs with the fault have 0.66 to 0.87. Own choice.
  double validation_of_loop = 0.20;
  double validation_of_loop_critical = 0.50;
  /// The validation share that a proposed interval aims for. Own choice.
  double validation_target = 0.10;

  /// Well-kept runs save every few minutes at most, which takes far less than this. Own choice.
  double checkpoint_share = 0.10;

  /// A shorter start imports a framework and opens the data, which a longer run amortises. Own choice.
  double startup_long_s = 120;
  double startup_info_share = 0.25;
  double startup_warning_share = 0.20;

  /// Share of readings with foreign processes on the device. Own choice: more often than not.
  double shared = 0.50;
  /// Share of readings with a thermal or power reason. Own choice.
  double throttled = 0.20;
  /// A full card at its power limit normally runs a few percent below its highest clock. Own choice.
  double throttle_share = 0.05;
  /// The engine proposes a smaller batch from here on.
  double memory_full = 0.90;
  /// One retry per hundred steps. Own choice.
  double retries_per_step = 0.01;

  /// Mean CPUs used by processes outside the run while it trains, from which on its rates are imprecise: at least a
  /// quarter of a CPU, above which repeated trials no longer agree within their usual 1 to 2 %, and a tenth of what the
  /// run itself uses; the system always uses less. Own choice after such trials on two CPUs.
  double others_cpus = 0.25;
  double others_share = 0.10;
  /// Part of the CPUs that the run's threads stood ready for, taken by other processes. From here on the run alone
  /// would be up to 1.4 times as fast, as with critical_share: what is measured is no longer its own. Own choice.
  double crowded_out = 0.30;

  /// Steps between two readings of the loss that fixes propose: often enough to watch, rare enough to cost nothing. Own
  /// choice.
  std::int64_t metrics_interval = 50;

  /// Without a finding, a wait of at least this share of wall time still decides the verdict. Own choice.
  double unexplained_share = 0.25;
  /// Without a finding, a device that is less busy has a cause that was not found, rather than none. Own choice.
  double healthy_busy = 0.60;

  /// What an hour of a GPU costs, in any currency. Zero: no price is shown.
  double gpu_hour_price = 0;
};

/// A field of the policy with its name in a policy file.
struct Threshold {
  std::string_view name;
  std::variant<double Policy::*, std::int64_t Policy::*, int Policy::*> field;
};

/// All thresholds, in the order of the policy.
inline constexpr std::array kThresholds = {
    Threshold{"min_steps", &Policy::min_steps},
    Threshold{"long_step_s", &Policy::long_step_s},
    Threshold{"min_kernels", &Policy::min_kernels},
    Threshold{"warning_share", &Policy::warning_share},
    Threshold{"trial_share", &Policy::trial_share},
    Threshold{"critical_share", &Policy::critical_share},
    Threshold{"min_bound", &Policy::min_bound},
    Threshold{"workers_busy", &Policy::workers_busy},
    Threshold{"free_cpus", &Policy::free_cpus},
    Threshold{"cpus_full", &Policy::cpus_full},
    Threshold{"oversubscribed", &Policy::oversubscribed},
    Threshold{"sample_cpus", &Policy::sample_cpus},
    Threshold{"workers_per_cpu", &Policy::workers_per_cpu},
    Threshold{"min_gain_without_workers", &Policy::min_gain_without_workers},
    Threshold{"between_steps", &Policy::between_steps},
    Threshold{"interpreted_loop", &Policy::interpreted_loop},
    Threshold{"interpreted_line", &Policy::interpreted_line},
    Threshold{"small_operation_s", &Policy::small_operation_s},
    Threshold{"page_fault_s", &Policy::page_fault_s},
    Threshold{"many_operations", &Policy::many_operations},
    Threshold{"many_calls", &Policy::many_calls},
    Threshold{"small_call_s", &Policy::small_call_s},
    Threshold{"many_slices", &Policy::many_slices},
    Threshold{"filled_per_s", &Policy::filled_per_s},
    Threshold{"after_training", &Policy::after_training},
    Threshold{"after_training_unseen_s", &Policy::after_training_unseen_s},
    Threshold{"slower_steps", &Policy::slower_steps},
    Threshold{"slower_steps_disturbed", &Policy::slower_steps_disturbed},
    Threshold{"mostly_last", &Policy::mostly_last},
    Threshold{"late_disturbed", &Policy::late_disturbed},
    Threshold{"lasting_losses", &Policy::lasting_losses},
    Threshold{"growing_memory", &Policy::growing_memory},
    Threshold{"memory_full_within_s", &Policy::memory_full_within_s},
    Threshold{"many_threads", &Policy::many_threads},
    Threshold{"restricted_cpus", &Policy::restricted_cpus},
    Threshold{"divided_tensor_s", &Policy::divided_tensor_s},
    Threshold{"row_s", &Policy::row_s},
    Threshold{"slow_sample_s", &Policy::slow_sample_s},
    Threshold{"bursts", &Policy::bursts},
    Threshold{"deep_prefetch", &Policy::deep_prefetch},
    Threshold{"tail_ratio", &Policy::tail_ratio},
    Threshold{"tail_mean", &Policy::tail_mean},
    Threshold{"on_cpu", &Policy::on_cpu},
    Threshold{"disk_wait", &Policy::disk_wait},
    Threshold{"disk_read_bytes_per_s", &Policy::disk_read_bytes_per_s},
    Threshold{"padding", &Policy::padding},
    Threshold{"trimmed_padding", &Policy::trimmed_padding},
    Threshold{"expensive_sample_s", &Policy::expensive_sample_s},
    Threshold{"min_epochs", &Policy::min_epochs},
    Threshold{"device_full", &Policy::device_full},
    Threshold{"syncs_per_step", &Policy::syncs_per_step},
    Threshold{"flushes_per_step", &Policy::flushes_per_step},
    Threshold{"flush_share", &Policy::flush_share},
    Threshold{"mostly", &Policy::mostly},
    Threshold{"launch_share", &Policy::launch_share},
    Threshold{"recompiles", &Policy::recompiles},
    Threshold{"recompile_limit", &Policy::recompile_limit},
    Threshold{"fixed_shapes", &Policy::fixed_shapes},
    Threshold{"fused_gain", &Policy::fused_gain},
    Threshold{"attention_share", &Policy::attention_share},
    Threshold{"far_from_full", &Policy::far_from_full},
    Threshold{"units_full", &Policy::units_full},
    Threshold{"link_payload", &Policy::link_payload},
    Threshold{"memory_target", &Policy::memory_target},
    Threshold{"max_batch_growth", &Policy::max_batch_growth},
    Threshold{"batch_max_wait", &Policy::batch_max_wait},
    Threshold{"precision_gain_cuda", &Policy::precision_gain_cuda},
    Threshold{"precision_gain_cpu", &Policy::precision_gain_cpu},
    Threshold{"emulation_loss", &Policy::emulation_loss},
    Threshold{"double_precision_loss", &Policy::double_precision_loss},
    Threshold{"fp16_capability", &Policy::fp16_capability},
    Threshold{"bf16_capability", &Policy::bf16_capability},
    Threshold{"tf32_capability", &Policy::tf32_capability},
    Threshold{"tf32_gain", &Policy::tf32_gain},
    Threshold{"low_precision_parameters", &Policy::low_precision_parameters},
    Threshold{"layout_gain_depthwise", &Policy::layout_gain_depthwise},
    Threshold{"validation_of_loop", &Policy::validation_of_loop},
    Threshold{"validation_of_loop_critical", &Policy::validation_of_loop_critical},
    Threshold{"validation_target", &Policy::validation_target},
    Threshold{"checkpoint_share", &Policy::checkpoint_share},
    Threshold{"startup_long_s", &Policy::startup_long_s},
    Threshold{"startup_info_share", &Policy::startup_info_share},
    Threshold{"startup_warning_share", &Policy::startup_warning_share},
    Threshold{"shared", &Policy::shared},
    Threshold{"throttled", &Policy::throttled},
    Threshold{"throttle_share", &Policy::throttle_share},
    Threshold{"memory_full", &Policy::memory_full},
    Threshold{"retries_per_step", &Policy::retries_per_step},
    Threshold{"others_cpus", &Policy::others_cpus},
    Threshold{"others_share", &Policy::others_share},
    Threshold{"crowded_out", &Policy::crowded_out},
    Threshold{"metrics_interval", &Policy::metrics_interval},
    Threshold{"unexplained_share", &Policy::unexplained_share},
    Threshold{"healthy_busy", &Policy::healthy_busy},
    Threshold{"gpu_hour_price", &Policy::gpu_hour_price},
};

/// The total size of the fields in all rows.
constexpr std::size_t bytes_of_fields() {
  std::size_t bytes = 0;
  for (const Threshold& threshold : kThresholds) {
    bytes += std::holds_alternative<int Policy::*>(threshold.field) ? sizeof(int) : sizeof(double);
  }
  return bytes;
}
static_assert((bytes_of_fields() + alignof(Policy) - 1) / alignof(Policy) * alignof(Policy) == sizeof(Policy),
              "every threshold of the policy has a row");

/// The factor by which the interval must grow for validation to take `wanted` of training plus validation. REQUIRES:
/// train_s > 0.
inline double longer_validation_interval(double train_s, double validate_s, double wanted) {
  return validate_s / train_s * (1 - wanted) / wanted;
}

/// True when other processes, which used `others` CPUs beside the run's `own`, make its rates imprecise. The only rule
/// on that: a CPU of others costs a run of one CPU much and a run of sixty little.
inline bool others_disturb(double others, double own, const Policy& policy = {}) {
  return others >= policy.others_cpus && others >= policy.others_share * own;
}

/// The share of the exchanges in which a late one of so many ranks comes last: as far between the even share and all
/// exchanges as mostly_last is for two ranks.
inline double late_rank(std::size_t ranks, const Policy& policy) {
  constexpr double kHalf = 0.5;
  const double even = 1.0 / static_cast<double>(ranks);
  return even + (policy.mostly_last - kHalf) / kHalf * (1 - even);
}

}  // namespace unidle::diagnose
