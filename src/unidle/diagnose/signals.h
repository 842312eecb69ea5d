// Everything that rules may look at. Rules do not know where signals come from (a record, foreign logs). Every field
// that may be missing is optional: missing is not zero. Times in seconds, shares 0..1.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unidle/account/knob_readings.h"
#include "unidle/account/phases.h"
#include "unidle/account/stalls.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/diagnose/facts.h"
#include "unidle/knobs/reach.h"

namespace unidle::diagnose {

struct Signals {
  // The run
  Outcome outcome = Outcome::kUnknown;
  double wall_s = 0;
  std::vector<std::string> command;
  knobs::RunOptions run_options;                // of `unidle run`, to start such a run again
  std::string folder;                           // in which the command was started; empty if unknown
  std::optional<std::int64_t> started_wall_ns;  // when, in Unix time
  knobs::OmittedSwitches switches;              // its options without a value that the command could have
  knobs::OmittedOptions omitted;                // numeric options of the program that the command could have
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  std::optional<std::int64_t> oom_kills;  // kills by the kernel in the run's cgroup
  std::string output_tail;                // end of stdout
  std::string error_tail;                 // end of stderr, when separate; the order of lines between streams is unknown
  std::optional<PrintedEnd> printed;      // from logs; for a record see the two tails above
  std::vector<EarlierAttempt> earlier_attempts;
  /// The last exception that the instrumentation saw, the steps that any process began after it, and the number of
  /// earlier exceptions.
  std::optional<std::string> exception;
  std::string exception_where;
  std::optional<std::int64_t> steps_after_exception;
  std::int64_t earlier_exceptions = 0;
  /// Why no training step was seen: "why" of the record's note `unseen`; "off" when the observer in the program gave
  /// up; "no-training" when Python was observed, but PyTorch's training was not called; "no-update" when
  /// models were called and no optimiser made a step; "no-times" when a log shows
  /// training without times. Empty when unknown.
  std::string blind;

  // Time
  PhaseTimes time;
  std::optional<StepShares> step;  // of the steps after warm-up
  /// In words, when a log states only the wait for input; the rest of `step` is then `other`.
  std::string input_stated;
  std::optional<std::int64_t> steps;  // number of steps seen
  std::optional<double> step_s;       // mean duration after warm-up
  /// Of the steps before a profiler's window, if the run has one (`rated_before_window`), because CUPTI stays attached
  /// after it. Absent when they are too few.
  std::optional<double> samples_per_s;
  std::optional<double> steps_per_s;
  std::optional<double> tokens_per_s;  // as stated in a log
  bool tokens_per_device = false;      // per device, not for all
  bool rated_before_window = false;
  std::optional<double> syncs_per_step;
  std::optional<std::int64_t> validations;
  std::optional<account::Tests> tests;             // of `validations`, those of the trained model
  std::optional<account::Tests> dry_runs;          // of `validations`, those before the first step; absent: not known
  std::string validation_called;                   // the line that starts validations
  std::string validation_where;                    // the program's function, whose calls can be skipped at run time
  std::string validation_kept;                     // why no call can be skipped
  std::map<std::string, std::string> refused;      // settings that this run was asked to take and refused: why
  std::optional<double> validation_wait_s;         // for batches of validation loaders, and for their workers to start
  std::optional<std::int64_t> validation_workers;  // the most of one of these loaders
  std::string validation_loader_where;             // where that one is made
  std::optional<std::int64_t> checkpoints;
  std::string checkpoint_where;                  // the line whose saving takes most time
  std::optional<std::int64_t> checkpoint_every;  // steps from one to the next, if regular
  bool checkpoint_each_epoch = false;            // that is as many as an epoch has
  std::optional<double> after_training_s;        // neither validation nor checkpoint, after the last step
  std::optional<std::int64_t> batch_samples;     // micro-batch size as seen
  std::optional<double> micro_batches;           // mean number per step
  std::optional<double> device_step_s;           // device compute time per step
  /// By the program's own events: the device's time per step, including gaps between kernels, and the time between the
  /// ends of two successive steps' work.
  std::optional<double> device_span_s;
  std::optional<double> device_period_s;
  /// Share of the steps without host waits in which the device had finished everything but the optimiser when the host
  /// ended the step. kernel_time_known: whether device_busy or device_step_s exclude the gaps between kernels.
  std::optional<double> device_kept_up;
  bool kernel_time_known = false;
  std::optional<KernelFacts> kernels;  // from a profiler trace
  std::optional<DeviceTimeline> timeline;
  std::optional<double> pinned_rate;  // bytes/s of copies from pinned memory to the device

  // Loader
  std::optional<LoaderFacts> loader;
  std::optional<SampleFacts> samples;
  std::optional<double> sample_s;  // mean time to make one sample on one thread
  /// Seconds that the threads of our own loader, in C++ or Python, spent reading files, decoding pictures, transforming
  /// them, and on the rest, in this order. Empty when not reported.
  std::vector<double> loader_stages_s;
  std::optional<double> loader_busy;      // 0..1, share of all loader threads' time; absent without workers
  std::optional<double> input_bursts;     // share of the input wait in the tenth of steps that wait longest
  std::optional<double> late_input_s;     // wait for input after the first epoch
  std::optional<double> late_training_s;  // of all steps after the first epoch
  std::optional<double> late_sample_s;    // mean cost of a sample after the first epoch
  std::optional<double> epochs;           // epochs so far
  std::vector<HotLine> hot;
  std::vector<PythonPlace> python_places;     // of the training process
  std::vector<AttentionPlace> attention;      // the most frequent first
  std::optional<OperationFacts> operations;   // of the training process
  std::optional<SliceFacts> slices;           // of the training process
  std::map<std::string, std::string> called;  // for lines of the program, the function of a package that they call

  // Device and host
  std::string device_kind = "unknown";
  std::optional<double> device_busy;
  std::string device_busy_how;
  bool busy_by_events = false;                // device_busy comes only from the steps' events, including gaps
  bool busy_is_limit = false;                 // device_busy is an upper limit
  std::optional<double> utilisation;          // NVML's: share of time with kernels, and copies (seen on an H200)
  std::optional<double> sm_activity;          // mean share of time with work on a multiprocessor (GPM)
  std::optional<double> tensor_activity;      // the same for matrix units
  std::optional<double> flops_per_step;       // from the shapes in a profiler's window
  std::optional<double> peak_s_per_step;      // time of flops_per_step at the data-sheet peak
  std::optional<double> flops_step_s;         // of that step; other logs may call something else a step
  std::optional<double> gpu_memory_used;      // 0..1
  std::string idle_gpus;                      // of several watched GPUs, the unused ones: "1, 2"
  std::optional<int> gpus;                    // visible on this machine; 0 is a measured zero
  std::optional<std::string> gpu_capability;  // "9.0"
  GpuFacts gpu;
  std::optional<double> cpus_allowed;      // by affinity and quota
  std::optional<double> cpus_at_start;     // allowed before the launch command or the program set a mask
  std::optional<double> cpus_of_workers;   // allowed to all loader workers together, by affinity
  std::optional<double> cpus_online;       // of the machine
  std::optional<double> cpus_used;         // mean over training
  std::optional<double> host_cpus_used;    // by all processes on this machine
  std::optional<double> others_cpus_used;  // part of it used outside the run
  std::optional<double> run_delay;         // CPUs that the run's threads stood ready for without getting one
  std::optional<bool> cpu_bf16;            // matrix or vector units for bf16
  bool virtual_machine = false;            // according to the CPU
  std::optional<double> host_memory_used;  // 0..1 of the job's limit, the highest reading
  std::optional<double> disk_wait;         // processes waiting for storage, mean while training
  std::optional<double> read_bytes_per_s;  // from storage, mean while training
  std::optional<double> threads;           // of the command and its children, mean while training
  std::optional<double> processes;

  // Model and step
  std::optional<bool> model_has_convolutions;
  std::optional<bool> model_has_depthwise;  // convolutions with as many groups as channels
  std::optional<std::int64_t> model_parameters;
  std::string model_dtype = {};  // of its parameters, in torch's words: "float32"; empty if unknown
  std::optional<std::int64_t> model_convolution_parameters;
  std::optional<bool> convolutions_tf32;  // cuDNN may use TF32 for them
  bool sparse_gradients = false;          // of an embedding; fused updates do not support them
  std::string model_where;
  std::optional<OptimizerFacts> optimizer;
  std::optional<CompileFacts> compile;
  std::optional<Development> development;  // absent for short trainings
  std::optional<account::Stalls> stalls;   // that come back
  bool step_lengths_seen = false;          // whether stalls would have been seen
  std::optional<LossFacts> losses;
  std::vector<GrowingFacts> growing;  // the most bytes first
  std::optional<SkippedBatches> skipped;
  std::optional<TransferFacts> transfer;
  std::optional<PaddingFacts> padding;
  std::optional<PageFaultFacts> page_faults;
  std::optional<DebuggingFacts> debugging;
  std::optional<LoggingFacts> logging;
  std::optional<std::vector<SyncCall>> syncs;  // absent: calls were not watched
  std::optional<std::int64_t> batch_shapes;    // number of different shapes seen
  std::optional<std::string> parallel;         // "none", "data_parallel", "ddp"
  std::optional<ExchangeFacts> exchange;
  std::vector<RankTime> ranks;
  std::optional<double> trainers;                // processes that train at the same time, by their samples
  std::optional<std::int64_t> training_process;  // of which the shares of a step are

  account::KnobReadings settings;
  /// Keys of the configuration that the program did not read, with file:line.
  std::vector<std::pair<std::string, std::string>> unread_keys;

  // Facts that only the source of the signals knows, in words; added to the finding that they concern.
  std::vector<std::string> failure_evidence;
  std::vector<std::string> limit_evidence;
  std::vector<std::string> told_of_idle_device;

  std::optional<std::string> effective(const std::string& knob) const;
  /// Whether the model's parameters are in a 16-bit format: it needs no autocast.
  bool model_in_16_bits() const;
  /// `device_s` seconds of the device as a share of a step: of the device's own period when known, because it was
  /// measured in the same steps.
  std::optional<double> share_of_step(std::optional<double> device_s) const;
};

}  // namespace unidle::diagnose
