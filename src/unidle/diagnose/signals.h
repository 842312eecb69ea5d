// Everything that rules may look at. Whoever fills it (a record, foreign logs) is not known to the rules.
// Every field that may be missing is optional: missing is not zero. Times in seconds, shares 0..1.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "unidle/account/ranks.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/logs/failure_line.h"

namespace unidle::diagnose {

/// A knob as configured and as it is in the live program.
struct SettingPair {
  std::optional<std::string> configured;
  std::string configured_at;  // file:line
  std::optional<std::string> effective;
  /// Variables that by their name set it, and their values.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string unnamed_key = {};  // the configured key, when no file of the program has its name in it
};

/// The source of unidle.data that gives what the program's data set gives.
struct SourceFacts {
  std::string name;               // "images", "table", ...
  std::string code;               // how it is called; "..." where a person has to say something
  std::string where;              // file:line that the data set was known by
  std::vector<std::string> left;  // what only a person can say; empty: nothing
  std::string note;               // another source that may be worth it
  std::string patch;              // the changed lines as a unified diff; may be empty
};

/// The loader that feeds training, as the program described it.
struct LoaderFacts {
  std::optional<std::int64_t> workers;
  std::optional<std::int64_t> batch_size;
  std::optional<std::int64_t> prefetch_factor;
  std::optional<std::int64_t> dataset_len;
  std::optional<std::int64_t> in_memory_bytes;
  std::optional<bool> pin_memory;
  std::optional<bool> persistent_workers;
  std::optional<bool> map_style;            // samples are fetched one by one by their key
  std::optional<bool> batched;              // a batch is fetched by one call
  std::optional<bool> in_memory;            // the samples are held in memory; nothing is read for one
  std::optional<bool> gathers;              // rows fetched together are those fetched singly; absent: it was not tried
  std::optional<bool> dataset_anew;         // the program has made the data set more than once
  std::optional<bool> by_thread;            // another thread of the program fetches its batches and passes them on
  std::string gathers_not;                  // why not, or why it was not tried
  std::vector<std::string> keepable;        // functions that a sample calls whose results could be kept
  std::vector<std::string> keepable_where;  // of each, file:line where unidle.cached can stand; empty: nowhere
  std::string made_with;                    // "torch", "unidle" (our package), "unidle.wrap"; empty: not told
  std::string dataset;                      // its class
  std::string dataset_where;                // file:line of what makes a sample
  std::string where;                        // file:line of where it is made
  std::optional<SourceFacts> source;        // that could stand for its data set
  /// Making an iterator until its first batch, beyond the fetch itself.
  std::optional<std::int64_t> starts;
  std::optional<double> start_wait_s;  // of it, what training waited for

  bool of_package() const { return made_with.starts_with("unidle"); }
};

/// What samples of the training loader cost, over all its threads and processes.
struct SampleFacts {
  std::int64_t count = 0;
  double total_s = 0;
  std::optional<double> p50_s;
  std::optional<double> p99_s;
  std::optional<double> max_s;
  std::optional<double> collate_s;  // putting batches together, in all
  std::optional<double> cpu_s;      // of total_s, on a CPU
  std::optional<double> wait_s;     // of total_s, not on a CPU
  /// Samples that were made again and looked at, and those of them that were the same to the byte.
  std::int64_t looked_at_again = 0;
  std::int64_t same_again = 0;

  /// Some samples are others each time: drawn at random, or of data that changes.
  bool differ() const { return same_again < looked_at_again; }
};

/// A line of the program that was often seen running.
struct HotLine {
  std::string role;   // "train" or "worker"
  std::string phase;  // what the process was doing: "input", "train", "validate"
  std::string where;  // file:line
  std::string function;
  std::int64_t hits = 0;
  std::int64_t total = 0;  // looks at that role and phase
};

/// A call that makes the host wait, by kind and place.
struct SyncCall {
  std::string call;  // "item", "cpu", "synchronize", "empty_cache", ...
  std::string where;
  std::int64_t count = 0;
  std::int64_t in_step = 0;  // of them inside training steps
  double seconds = 0;
};

struct TransferFacts {
  double pinned_bytes = 0;
  double pageable_bytes = 0;
  std::optional<std::int64_t> blocking;
  std::optional<std::int64_t> nonblocking;
  std::string where;
  /// Of them, copied in training steps and in the stream that computes; absent where nobody looked at streams.
  std::optional<double> in_line_bytes = {};
};

struct OptimizerFacts {
  std::string name;
  std::optional<bool> fused;
  std::optional<bool> foreach;
  std::optional<std::int64_t> tensors;
  std::string where = {};  // the line that makes it
};

struct CompileFacts {
  bool compiled = false;
  std::int64_t recompilations = 0;
  double seconds = 0;
  std::string reason;
};

using account::RankTime;

struct PaddingFacts {
  double real = 0;
  double padded = 0;  // all elements, the real ones included
  std::string where;
};

struct LoggingFacts {
  std::int64_t calls = 0;
  double seconds = 0;
  std::string where;
};

/// What a profiler trace tells of the kernels in it.
struct KernelFacts {
  double mean_s = 0;
  std::optional<double> launch_s;  // of the host's time, to launch one
  double matrix_share = 0;         // of the kernels' time, on matrix units
};

/// What a profiler's trace shows of one device besides computing, and of the host while the device was idle. Shares of
/// the wall time.
struct DeviceTimeline {
  double communication = 0;        // exchange with other devices
  double communication_alone = 0;  // of it, not overlapped by other kernels
  double copies_alone = 0;         // copies that no kernel overlaps
  double idle = 0;                 // nothing ran; the parts below sum to it
  double input = 0;                // the loop took a batch from its loader
  double compile = 0;              // the host compiled, loaded kernels, captured graphs
  double allocator = 0;            // allocated or freed memory of the device
  double sync = 0;                 // waited for the device, or launched again after such a wait
  double copy_calls = 0;           // was in copy calls
  double launch = 0;               // launched, with the Python and the operators of a launch
  double host = 0;                 // did something else for more than a millisecond
  double profiler = 0;
  double queued = 0;  // the work was queued already
  double unseen = 0;
  std::int64_t kernels = 0;
  std::optional<double> launch_every_s;  // kernels came one after the other so often
  std::string host_in;                   // the host's event in the longest gap
  double longest_gap_s = 0;
  bool python_frames = false;  // each Python function was recorded, which slows the host down
  bool alone = false;          // no log or record beside it: shares are of the trace's window
};

/// What the driver says about the device while training; each may be missing by itself.
struct GpuFacts {
  std::optional<double> throttled;  // share of readings with a thermal or power reason
  std::string throttle_reasons;     // in words
  std::optional<double> clock_mhz;  // mean SM clock
  std::optional<double> clock_max_mhz;
  std::optional<double> link_width;  // lanes, the most that was seen
  std::optional<double> link_width_max;
  std::optional<double> link_generation;
  std::optional<double> link_generation_max;
  std::optional<double> link_received;  // bytes/s, the most that was seen
  bool throttled_by_power_only = false;
  std::optional<double> power_limit_w;          // in force
  std::optional<double> power_default_limit_w;  // of the board as it was made
  std::optional<double> shared;                 // share of readings in which processes of others held its memory
  std::optional<double> foreign_bytes;          // how much they held, mean
  std::optional<std::int64_t> memory_bytes;
  std::optional<std::int64_t> alloc_retries;
  std::optional<std::int64_t> ooms;
  std::optional<std::int64_t> oom_samples;       // of the largest batch that did not fit
  std::optional<std::int64_t> oom_steps_before;  // before the newest such error
};

/// A failure as the program, or what ran it, printed it.
struct PrintedFailure {
  std::string message;               // "TypeError: Object of type float32 is not JSON serializable"
  std::optional<std::string> where;  // "train.py:78", the innermost frame of the user's own code
  bool went_on = false;              // progress lines follow it
  logs::FailureFacts facts;
};

/// What the output of a run tells of its end.
struct PrintedEnd {
  std::optional<PrintedFailure> failure;  // the one that explains the end
  std::optional<PrintedFailure> memory;   // a lack of memory: the same failure or another
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
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  std::optional<std::int64_t> oom_kills;  // by the kernel, in the group of processes that the run is in
  std::string output_tail;                // end of stdout
  std::string error_tail;  // end of stderr, where it is known apart: nothing tells which of two lines came first
  std::optional<PrintedEnd> printed;  // from logs; for a record see the two tails above
  std::vector<EarlierAttempt> earlier_attempts;
  /// The last exception that the program's instrumentation saw, the steps that any process began after it, and how many
  /// others came before it.
  std::optional<std::string> exception;
  std::string exception_where;
  std::optional<std::int64_t> steps_after_exception;
  std::int64_t earlier_exceptions = 0;
  /// Why no training step was seen: "why" of the record's note `unseen`, or "off" (the observer in the program gave
  /// way), or "no-training" (a Python was followed, and nothing of PyTorch's training was called). Empty where there is
  /// no telling.
  std::string blind;

  // Time
  PhaseTimes time;
  std::optional<StepShares> step;  // of the steps after warm-up
  /// In words, where a log states the wait for input and nothing else of the steps: then the rest of `step` is `other`.
  std::string input_stated;
  std::optional<std::int64_t> steps;  // how many were seen
  std::optional<double> step_s;       // mean duration after warm-up
  /// Of the steps before a profiler's window alone, where one lies in the run (`rated_before_window`): it leaves CUPTI
  /// attached. Absent where they are too few.
  std::optional<double> samples_per_s;
  std::optional<double> steps_per_s;
  std::optional<double> tokens_per_s;  // as a log states it
  bool tokens_per_device = false;      // of one device of several
  bool rated_before_window = false;
  std::optional<double> syncs_per_step;
  std::optional<std::int64_t> validations;
  std::string validation_where;  // function of the program; its calls can be left out while it runs
  std::string validation_kept;   // why none can
  std::optional<std::int64_t> checkpoints;
  std::optional<std::int64_t> batch_samples;  // micro-batch size as seen
  std::optional<double> micro_batches;        // mean number to one step
  std::optional<double> device_step_s;        // time the device computed for one step
  /// By the program's own events: the time that the device worked for one step, gaps between kernels and all, and the
  /// time from the end of one step's work to the end of the next one's.
  std::optional<double> device_span_s;
  std::optional<double> device_period_s;
  /// Of the steps in which the host did not wait: those whose work the device had done but for the optimiser's when the
  /// host came to their end. And whether device_busy or device_step_s leave out the gaps between kernels.
  std::optional<double> device_kept_up;
  bool kernel_time_known = false;
  std::optional<KernelFacts> kernels;  // of a profiler trace
  std::optional<DeviceTimeline> timeline;
  std::optional<double> pinned_rate;  // bytes/s of its copies from pinned memory to the device

  // Loader
  std::optional<LoaderFacts> loader;
  std::optional<SampleFacts> samples;
  std::optional<double> sample_s;  // mean time to produce one sample, one thread
  /// Of the threads of our own loader, in C++ or in Python: reading files, decoding pictures, changing them, all else.
  /// Empty: not told.
  std::vector<double> loader_stages_s;
  std::optional<double> loader_busy;    // 0..1, of the time of all loader threads; absent without workers
  std::optional<double> input_bursts;   // share of the input wait that falls to the tenth of steps that wait longest
  std::optional<double> late_input_s;   // waited for input after the first pass over the data
  std::optional<double> late_sample_s;  // mean cost of a sample after the first pass
  std::optional<double> epochs;         // passes over the data so far
  std::vector<HotLine> hot;

  // Device and host
  std::string device_kind = "unknown";
  std::optional<double> device_busy;
  std::string device_busy_how;
  bool busy_by_events = false;                // device_busy is by the steps' own events alone, gaps and all
  bool busy_is_limit = false;                 // device_busy is the most that it can be
  std::optional<double> utilisation;          // NVML's: the time in which kernels ran, and copies (seen on an H200)
  std::optional<double> sm_activity;          // mean over its multiprocessors of the time with work on them (GPM)
  std::optional<double> tensor_activity;      // the same of its matrix units
  std::optional<double> gpu_memory_used;      // 0..1
  std::string idle_gpus;                      // of several that were watched, those that did nothing: "1, 2"
  std::optional<int> gpus;                    // visible on this machine; 0 is measured zero
  std::optional<std::string> gpu_capability;  // "9.0"
  GpuFacts gpu;
  std::optional<double> cpus_allowed;      // affinity and quota together
  std::optional<double> cpus_at_start;     // that the run might use before the program narrowed itself to cpus_allowed
  std::optional<double> cpus_of_workers;   // all workers of the loader together, by their affinity
  std::optional<double> cpus_online;       // of the machine
  std::optional<double> cpus_used;         // mean over training
  std::optional<double> host_cpus_used;    // by everybody on this machine
  std::optional<double> others_cpus_used;  // of it, not by the run
  std::optional<bool> cpu_bf16;            // matrix or vector units for bf16
  bool virtual_machine = false;            // the CPU says so
  std::optional<double> host_memory_used;  // 0..1 of what the job may use, the most that was seen
  std::optional<double> disk_wait;         // processes waiting for storage, mean while training
  std::optional<double> read_bytes_per_s;  // from storage, mean while training
  std::optional<double> threads;           // of the command and its children, mean while training
  std::optional<double> processes;

  // Model and step
  std::optional<bool> model_has_convolutions;
  std::optional<bool> model_has_depthwise;  // convolutions with as many groups as channels
  std::optional<std::int64_t> model_parameters;
  bool model_in_16_bits = false;  // its parameters are: its products need no autocast
  std::optional<std::int64_t> model_convolution_parameters;
  std::optional<bool> convolutions_tf32;  // cuDNN may use TF32 for them
  std::string model_where;
  std::optional<OptimizerFacts> optimizer;
  std::optional<CompileFacts> compile;
  std::optional<TransferFacts> transfer;
  std::optional<PaddingFacts> padding;
  std::optional<LoggingFacts> logging;
  std::optional<std::vector<SyncCall>> syncs;  // absent: calls were not watched
  std::optional<std::int64_t> batch_shapes;    // how many different ones were seen
  std::optional<std::string> parallel;         // "none", "data_parallel", "ddp"
  std::vector<RankTime> ranks;

  // Settings by knob name
  std::map<std::string, SettingPair> settings;
  /// Keys of the configuration that the program did not read, with file:line.
  std::vector<std::pair<std::string, std::string>> unread_keys;

  // Facts that only the source of the signals knows, in words; they join the finding that they are about.
  std::vector<std::string> told_of_failure;
  std::vector<std::string> told_of_limit;
  std::vector<std::string> told_of_idle_device;

  std::optional<std::string> effective(const std::string& knob) const;
  /// So many seconds of the device as a share of a step: of its own period where that is known, because it was measured
  /// in the same steps.
  std::optional<double> share_of_step(std::optional<double> device_s) const;
};

}  // namespace unidle::diagnose
