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
#include "unidle/account/ranks.h"
#include "unidle/account/stalls.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/knobs/reach.h"
#include "unidle/logs/failure_line.h"

namespace unidle::diagnose {

/// The source of unidle.data that can replace the program's data set.
struct SourceFacts {
  std::string name;               // "images", "table", ...
  std::string code;               // the call; "..." where a person has to fill something in
  std::string where;              // file:line by which the data set was recognised
  std::vector<std::string> left;  // what only a person can decide; empty: nothing
  std::string note;               // another source worth considering
  std::string patch;              // the changed lines as a unified diff; may be empty
};

/// The training loader, as the program described it.
struct LoaderFacts {
  std::optional<std::int64_t> workers;
  std::optional<std::int64_t> batch_size;
  std::optional<std::int64_t> prefetch_factor;
  std::optional<std::int64_t> dataset_len;
  std::optional<std::int64_t> in_memory_bytes;
  std::optional<bool> pin_memory;
  std::optional<bool> persistent_workers;
  std::optional<bool> map_style;            // samples are fetched one by one by key
  std::optional<bool> batched;              // one call fetches a whole batch
  std::optional<bool> in_memory;            // samples are held in memory; nothing is read per sample
  std::optional<bool> gathers;              // fetching rows together gives the same rows; absent: not tried
  std::optional<bool> dataset_anew;         // the program made the data set more than once
  std::optional<bool> by_thread;            // a separate thread fetches batches and passes them on
  std::string gathers_not;                  // why `gathers` is false or was not tried
  std::vector<std::string> keepable;        // functions called per sample whose results could be kept
  std::vector<std::string> keepable_where;  // for each, file:line for unidle.cached; empty: nowhere
  std::string made_with;                    // "torch", "unidle" (our package), "unidle.wrap"; empty: unknown
  std::string draws;                        // what draws random numbers when a sample is made
  std::string dataset;                      // its class
  std::string dataset_where;                // file:line of the program's function that makes a sample
  std::string collate;                      // the function that puts samples together
  std::string collate_where;                // file:line of the program's own one; empty for those of packages
  std::string where;                        // file:line where the loader is made
  std::optional<SourceFacts> source;        // may replace its data set
  std::optional<std::int64_t> starts;       // times that workers were started
  std::optional<double> start_wait_s;       // time that training waited for them

  bool of_package() const { return made_with.starts_with("unidle"); }
};

/// The cost of the training loader's samples, over all its threads and processes.
struct SampleFacts {
  std::int64_t count = 0;
  double total_s = 0;
  std::optional<double> p50_s;
  std::optional<double> p99_s;
  std::optional<double> max_s;
  std::optional<double> collate_s;  // total time for collating batches
  std::optional<double> cpu_s;      // part of total_s on a CPU
  std::optional<double> wait_s;     // part of total_s not on a CPU
  /// CPU time of one sample, in the mean.
  std::optional<double> mean_cpu_s() const {
    return cpu_s && count > 0 ? std::optional(*cpu_s / static_cast<double>(count)) : std::nullopt;
  }
  /// Part of wait_s in which the thread stood ready for a CPU. Where it is known, p50_s and p99_s are without it.
  std::optional<double> run_delay_s;
  /// Samples that were made again and compared, and how many of them were identical to the byte.
  std::int64_t compared_samples = 0;
  std::int64_t identical_samples = 0;

  /// True when some samples differ each epoch: they are drawn at random, or the data changes.
  bool differ() const { return identical_samples < compared_samples; }
};

/// A line of the program in which stack samples fell.
struct HotLine {
  std::string role;      // "train" or "worker"
  std::string phase;     // what the process was doing: "input", "train", "validate", "after" (training), ...
  std::string where;     // file:line; empty when no line of the program made the sample
  std::string function;  // of a package, with its module, when `where` is empty
  std::int64_t hits = 0;
  std::int64_t total = 0;   // stack samples in that role and phase
  std::string caller = {};  // of start-up: the program's function that called it, with its line
};

/// A loop of the program in the forward pass, or a line outside of loops.
struct PythonPlace {
  std::string place;  // of the loop, or the line
  bool in_loop = false;
  std::string where;          // the line with the most stack samples
  std::int64_t looks = 0;     // stack samples there
  std::int64_t held = 0;      // those in which the training thread held Python's lock
  std::int64_t of_looks = 0;  // all stack samples of the forward pass
  std::int64_t direct = 0;    // those there in which the loop called no module
};

/// Differentiable operations of torch in the forward passes of training.
struct OperationFacts {
  double per_pass = 0;
  double seconds_each = 0;  // of the forward pass, divided by them
  double previews = 0;      // times that the model made samples or chose actions between steps
  /// Of the module that is called most: calls for each backward pass, seconds of a call, part of all forward passes.
  std::optional<double> calls_per_backward;
  double call_s = 0;
  double part_of_forward = 0;
};

/// Slices of tensors of which the backward pass of a step fills the gradients.
struct SliceFacts {
  double bytes = 0;            // of all these gradients
  std::int64_t of_tensor = 0;  // slices of the tensor with most of the bytes
  std::string shape;           // of that tensor: "64x60x30x30"
};

/// A call that makes the host wait, by kind and place.
struct SyncCall {
  std::string call;  // "item", "cpu", "synchronize", "empty_cache", ...
  std::string where;
  std::int64_t count = 0;
  std::int64_t in_step = 0;  // calls inside training steps
  double seconds = 0;
};

struct TransferFacts {
  double pinned_bytes = 0;
  double pageable_bytes = 0;
  std::optional<std::int64_t> blocking;
  std::optional<std::int64_t> nonblocking;
  std::string where;
  /// Bytes copied in training steps in the compute stream; absent when streams were not observed.
  std::optional<double> in_line_bytes = {};
};

struct OptimizerFacts {
  std::string name;
  std::optional<bool> fused;
  std::optional<bool> foreach;
  std::optional<std::int64_t> tensors;
  std::string where = {};            // the line that makes it
  std::string also = {};             // other lines that make optimisers, separated by commas
  std::optional<bool> fusable = {};  // whether its class has a fused form
  std::optional<double> part = {};   // of all optimisers' time: of those that could be fused and are not
};

struct CompileFacts {
  bool compiled = false;
  std::int64_t recompilations = 0;
  double seconds = 0;
  std::string reason;
};

using account::RankTime;

/// How DistributedDataParallel exchanges gradients.
struct ExchangeFacts {
  std::string backend;  // "gloo", "nccl"
  std::optional<bool> find_unused;
  std::optional<bool> static_graph;
  std::string hook;  // that changes what is sent, by its name; empty: none
  std::optional<double> gradient_bytes;
  std::optional<double> per_step = {};  // exchanges in an optimiser step
};

/// A container of the program that grows with the steps.
struct GrowingFacts {
  std::string name;   // of the variable or attribute
  std::string where;  // file:line at which it grows
  double per_step = 0;
  double bytes_per_step = 0;  // of its elements, without the graphs of tensors
  bool graph = false;         // its elements hold tensors with their graph

  /// "name (file:line)".
  std::string text() const { return name + " (" + where + ")"; }
};

/// The losses of the training process.
struct LossFacts {
  std::int64_t seen = 0;
  std::int64_t lasting = 0;     // those at the end of the run, in a row, that are not finite
  std::int64_t first_step = 0;  // of these
  std::optional<std::pair<std::int64_t, double>> last_finite;  // the step before them, and its loss
};

/// How the length of a step and the memory of the run develop: medians of the fifths of the training, after
/// warm-up; of few readings of the memory, the readings themselves.
struct Development {
  std::vector<double> step_s;
  std::vector<double> memory_bytes;
  double memory_per_step = 0;       // bytes
  std::optional<double> full_in_s;  // at that rate, until the job's memory is full
};

/// Batches that were fetched before training began and not trained: a resumed run reads on to its place.
struct SkippedBatches {
  std::int64_t count = 0;
  double seconds = 0;
};

struct PaddingFacts {
  double real = 0;
  double padded = 0;              // all elements, including real ones
  std::optional<double> longest;  // elements up to the longest sequence of each batch
  bool cuts = false;              // batches may end there: batch.trim_padding
  std::string where;
};

struct LoggingFacts {
  std::int64_t calls = 0;
  double seconds = 0;
  std::string where;                             // the line that took most
  std::optional<std::int64_t> where_calls = {};  // of that line
};

/// What a profiler trace says about its kernels.
struct KernelFacts {
  double mean_s = 0;
  std::optional<double> launch_s;  // host time to launch one
  double matrix_share = 0;         // share of kernel time on matrix units
};

/// What a profiler's trace shows of one device besides compute, and of the host while the device was idle. Shares of
/// the wall time.
struct DeviceTimeline {
  double communication = 0;        // exchange with other devices
  double communication_alone = 0;  // part of it that no other kernel overlaps
  double copies_alone = 0;         // copies that no kernel overlaps
  double idle = 0;                 // nothing ran; the sum of the parts below
  double input = 0;                // the loop fetched a batch from its loader
  double compile = 0;              // the host compiled, loaded kernels, captured graphs
  double allocator = 0;            // the host allocated or freed device memory
  double sync = 0;                 // the host waited for the device, or launched again after such a wait
  double copy_calls = 0;           // the host was in copy calls
  double launch = 0;               // the host launched, including Python and operators of a launch
  double host = 0;                 // the host did something else for more than a millisecond
  double unnamed = 0;              // the part of it in which no thread has an event
  double profiler = 0;
  double queued = 0;  // the work was already queued
  double unseen = 0;
  std::int64_t kernels = 0;
  std::optional<double> launch_every_s;  // mean time between successive kernels
  std::string host_in;                   // the host event in the longest gap
  double longest_gap_s = 0;
  bool python_frames = false;  // every Python call was recorded, which slows the host down
  bool alone = false;          // no log or record beside it: shares are of the trace's window
};

/// The driver's readings of the device while training; each may be missing.
struct GpuFacts {
  std::optional<double> throttled;  // share of readings with a thermal or power reason
  std::string throttle_reasons;     // in words
  std::optional<double> clock_mhz;  // mean SM clock
  std::optional<double> clock_max_mhz;
  std::optional<double> link_width;  // lanes, the highest reading
  std::optional<double> link_width_max;
  std::optional<double> link_generation;
  std::optional<double> link_generation_max;
  std::optional<double> link_received;  // bytes/s, the highest reading
  bool throttled_by_power_only = false;
  std::optional<double> power_limit_w;          // in force
  std::optional<double> power_default_limit_w;  // the board's default
  std::optional<double> shared;                 // share of readings with other processes' memory on it
  std::optional<double> foreign_bytes;          // mean memory of those processes
  std::optional<std::int64_t> memory_bytes;
  std::optional<std::int64_t> alloc_retries;
  std::optional<std::int64_t> ooms;
  std::optional<std::int64_t> oom_samples;       // of the largest batch that did not fit
  std::optional<std::int64_t> oom_steps_before;  // before the newest such error
};

/// A failure that the program, or its launcher, printed.
struct PrintedFailure {
  std::string message;               // "TypeError: Object of type float32 is not JSON serializable"
  std::optional<std::string> where;  // "train.py:78", the innermost frame of the user's own code
  bool went_on = false;              // progress lines follow it
  logs::FailureFacts facts;
};

/// Failures that a run's output shows at its end.
struct PrintedEnd {
  std::optional<PrintedFailure> failure;  // the one that explains the end
  std::optional<PrintedFailure> memory;   // a lack of memory: the same failure or another one
};

/// An attempt of the run that the scheduler ended; the run went on in a later one.
struct EarlierAttempt {
  bool time_limit = false;
  std::string said;  // the scheduler's words, and their place in the log
};

struct Signals {
  // The run
  Outcome outcome = Outcome::kUnknown;
  double wall_s = 0;
  std::vector<std::string> command;
  std::vector<std::string> run_options;         // of `unidle run`, to start such a run again
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
  /// up; "no-training" when Python was observed, but PyTorch's training was not called. Empty when unknown.
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
