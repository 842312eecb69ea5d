// What the signals of a run consist of: facts about its loader, its model, its steps, its device and its logs. Times in
// seconds, shares 0..1. A field that may be missing is optional: missing is not zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unidle/account/ranks.h"
#include "unidle/diagnose/diagnosis.h"
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
  std::string iterated_where;               // file:line where one of its iterators was made
  std::optional<std::int64_t> iterators;    // iterators that were made
  std::optional<std::int64_t> batches;      // batches that they gave
  std::optional<std::int64_t> in_epoch;     // samples of one pass over the data
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
  std::int64_t repeated = 0;  // those there in which it called modules, the same in each iteration
  std::int64_t known = 0;     // those there of which is known whether it held the lock
};

/// A line of the program that calls attention which computes its weights as a matrix of their own.
struct AttentionPlace {
  std::string where;
  std::int64_t looks = 0;     // stack samples in which it did
  std::int64_t of_looks = 0;  // all stack samples of the forward pass
};

/// Differentiable operations of torch in the forward passes of training.
struct OperationFacts {
  double per_pass = 0;
  double seconds_each = 0;     // of the forward pass, divided by them
  double previews = 0;         // times that the model made samples or chose actions between steps
  double preview_samples = 0;  // of one of these forward passes: the environments in which an agent acts at once
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

/// Memory that the training process asked the system for while it trained.
struct PageFaultFacts {
  double faults = 0;    // without I/O
  double system_s = 0;  // CPU time in the kernel
  double cpu_s = 0;     // all CPU time
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

/// Debugging aids of torch that are on while the program trains.
struct DebuggingFacts {
  bool anomaly = false;              // autograd looks for anomalies
  bool profiler = false;             // a profiler of the program is on all the time
  bool launch_blocking = false;      // each kernel is waited for
  bool checked_collectives = false;  // ranks compare what they exchange
  std::string where;                 // file:line that switched `anomaly` on
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

}  // namespace unidle::diagnose
