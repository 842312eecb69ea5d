// Every threshold that rules use, in one place, each with its reason.
#pragma once

#include <cstdint>

namespace unidle::diagnose {

/// Shares are of the wall time of the run unless said otherwise. "Own choice" marks what is judgement, not measurement.
struct Policy {
  /// Shares of fewer steps say nothing: the first steps of any run allocate, tune and compile. Own choice.
  std::int64_t min_steps = 5;
  /// Below a tenth of the wall time a cause is worth at most 1.11x, which is inside the spread of repeated short runs
  /// on shared machines. Own choice.
  double warning_share = 0.10;
  /// From here on removing the cause alone is worth up to 1.4x. Own choice.
  double critical_share = 0.30;

  /// Below this, more workers would not shorten the run enough to be measured; the finding then warns at most.
  double min_bound = 1.05;

  /// Workers count as busy from here on; the rest is hand-over between a worker and the training thread. Own choice.
  double workers_busy = 0.85;
  /// CPUs that must be free before another worker can help: one worker needs about one CPU.
  double free_cpus = 0.75;

  /// A sample cheaper than this is read from memory faster than a cache would look it up: hashing the key, an index
  /// look-up and mapping a file take some 50-100 us. Ten times that.
  double expensive_sample_s = 1e-3;
  /// A second pass has to be under way, otherwise nothing was computed twice.
  double min_epochs = 1.0;

  /// From here on the device is busy enough that host waits cannot be what limits it. Own choice.
  double device_full = 0.90;
  /// One wait a step or nearly so; less is what a logging interval gives.
  double syncs_per_step = 0.9;

  /// "Far from full", for the device's memory and its time alike. Own choice; below 70 % of memory the engine's own
  /// memory policy already proposes a larger batch.
  double far_from_full = 0.50;
  /// A larger batch may fill the memory up to here; the engine proposes a smaller one above 90 %.
  double memory_target = 0.80;
  /// Largest step of one proposal; what lies beyond is for a measured search.
  std::int64_t max_batch_growth = 8;
  /// With more input or host wait than this in a step (share of the step), a larger batch is not what is missing.
  double batch_max_wait = 0.20;

  /// Peak rate of bf16 or fp16 over what fp32 code runs at: dense tensor-core peak is twice that of TF32 (A100: 312 and
  /// 156 TFLOP/s, NVIDIA A100 data sheet), far more over plain fp32.
  double precision_gain_cuda = 2.0;
  /// One VDPBF16PS does twice the multiply-adds of an fp32 FMA of the same width (Intel 64 manual, AVX512_BF16).
  double precision_gain_cpu = 2.0;
  /// fp16 tensor cores came with compute capability 7.0, bf16 with 8.0 (CUDA programming guide, table of capabilities).
  int fp16_capability = 7;
  int bf16_capability = 8;
  /// Channels-last over channels-first on a CPU, forward and backward, torch 2.11 on one AVX2 core: ConvNeXt blocks
  /// with 7x7 depth-wise convolutions 1.35x (the whole superres step of our engine 2x), plain 3x3 networks 1.0x,
  /// because oneDNN reorders those into blocks of its own. So: a share for depth-wise, a hint for plain ones.
  double layout_gain_depthwise = 1.35;

  /// Share of training plus validation, not of wall: keeping validation under a third of the loop is common practice;
  /// published logs with the fault stand at 0.66 to 0.87. Own choice.
  double validation_of_loop = 0.30;
  double validation_of_loop_critical = 0.50;

  /// Saving writes at most every few minutes in a well-kept run, which is far below this. Own choice.
  double checkpoint_share = 0.10;

  /// A start of less than this is importing a framework and opening the data: what a longer run spreads out. Own
  /// choice.
  double startup_long_s = 120;
  double startup_info_share = 0.25;
  double startup_warning_share = 0.20;

  /// With no finding of its own, a wait this large (share of wall) still names the run after it. Own choice.
  double unexplained_share = 0.25;
};

}  // namespace unidle::diagnose
