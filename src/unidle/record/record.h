// The run record: one SQLite file a run, `record.db` in the record's folder. docs/record-format.md documents it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unidle/base/clock.h"

namespace unidle::record {

/// Stored in every record; a reader refuses a newer one and says so.
constexpr int kSchemaVersion = 2;

/// One optimiser step of one process, with the time of its parts. Times in ns; parts that were not seen are absent.
struct Step {
  std::int64_t process = 0;  // pid
  std::int64_t index = 0;
  std::int64_t t_ns = 0;  // begin, CLOCK_MONOTONIC
  std::int64_t duration_ns = 0;
  std::int64_t samples = 0;
  std::int64_t micro_batches = 1;
  std::optional<std::int64_t> input_ns;
  std::optional<std::int64_t> transfer_ns;
  std::optional<std::int64_t> forward_ns;
  std::optional<std::int64_t> backward_ns;
  std::optional<std::int64_t> optimizer_ns;
  std::optional<std::int64_t> sync_ns;
  std::optional<std::int64_t> syncs;  // how many waits make up sync_ns
  std::optional<double> loss;
  std::optional<std::int64_t> samples_before;  // samples seen before this step
};

/// A stretch of time outside the steps.
struct Span {
  std::string kind;  // "startup", "validate", "checkpoint"
  std::int64_t process = 0;
  std::int64_t t_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t samples = 0;
};

/// A loader thread or process produced samples: exact aggregates over one second.
struct SampleWork {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  std::int64_t t_ns = 0;  // begin of the second
  std::int64_t samples = 0;
  std::int64_t busy_ns = 0;
  std::int64_t slowest_ns = 0;
  std::int64_t bytes = 0;
};

/// A metric that the training program reported, e.g. "loss", "psnr".
struct Metric {
  std::string name;
  std::int64_t t_ns = 0;
  std::int64_t step = 0;
  std::int64_t samples = 0;  // seen so far
  double value = 0;
};

/// A setting: what the configuration says, or what the live program has.
struct Setting {
  std::string knob;
  std::string value;
  std::string source;    // "configured", "effective", "environment" or "unnamed"
  std::string location;  // "file:line" or flag of a configured one, the variable's name; may be empty
};

/// One named time series of the host or a device, e.g. {"process.cpu", "cores"}.
struct Series {
  std::string name;
  std::string unit;
  std::string subject;  // "", "gpu0", "pid 123"
};

struct Point {
  std::int64_t t_ns = 0;
  double value = 0;
};

struct Note {
  std::int64_t t_ns = 0;
  std::int64_t process = 0;
  nlohmann::json body;
};

/// How far one of the files by which processes report has come into the record: docs/record-format.md, table
/// `positions`.
struct Position {
  std::string file;  // its name
  std::int64_t process = 0;
  std::int64_t process_start = 0;  // in clock ticks since the machine started; 0: not known
  std::int64_t started_ns = 0;     // with the name, which file it is
  std::int64_t taken = 0;
};

/// What a recorder that goes on with a record has to know of it.
struct ResumePoint {
  std::vector<Position> positions;
  std::map<std::int64_t, std::int64_t> last_steps;  // by process
  std::set<std::int64_t> processes;                 // all that are in the record
};

/// Whether a writer makes a record or goes on with one that was cut off.
enum class Begin { kNew, kResume };

/// Writes a record. Not thread-safe: one thread owns it. Work is committed once a second and on flush(), so that a
/// record cut off by kill -9 stays readable up to then. Throws kIo (subject: the file) on a full disk or an
/// unwritable folder; after that the record is closed and further calls do nothing.
class Writer {
 public:
  /// Makes `folder` and `record.db` in it. A record that is already there is an error (kUsage).
  /// kResume: goes on with the one that is there; throws kIo when that cannot be. Only one may write a record at a
  /// time.
  /// `clock` tells when to commit, and must outlive it.
  explicit Writer(const std::filesystem::path& folder, Begin begin = Begin::kNew, Clock& clock = system_clock());
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void set_meta(std::string_view key, const nlohmann::json& value);
  void add(const Step& step);
  void add(const Span& span);
  void add(const SampleWork& work);
  void add(const Metric& metric);
  void add(const Setting& setting);
  void add(const Note& note);
  /// The end of the command's output, as kept by the supervisor; replaces what was there.
  void set_output_tail(std::string_view stream, std::string_view bytes);
  /// Series ids are per record; the same series gives the same id.
  std::int64_t series(const Series& series);
  void add_point(std::int64_t series, Point point);
  void set(const Position& position);
  void drop_position(std::string_view file);
  void drop_positions();
  void flush();
  /// From here on work is committed by flush() alone: what lies between two of them is in the record whole or not at
  /// all.
  void commit_on_flush_only();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads a record, also one that is still being written. Throws kInput (subject: the path) when it is none, is damaged,
/// or has a newer schema.
class Reader {
 public:
  /// `path`: the folder or the record.db in it.
  explicit Reader(const std::filesystem::path& path);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  const std::filesystem::path& folder() const;
  std::optional<nlohmann::json> meta(std::string_view key) const;
  /// Of kStartNs or kEndNs; nothing where it is missing or no time.
  std::optional<std::int64_t> time(std::string_view key) const;
  /// All of them by key.
  std::map<std::string, nlohmann::json> all_meta() const;
  std::vector<Step> steps() const;
  /// The last `most` of them, in order.
  std::vector<Step> last_steps(std::int64_t most) const;
  std::vector<Span> spans() const;
  std::vector<SampleWork> sample_work() const;
  std::vector<Metric> metrics(std::string_view name) const;
  std::vector<std::string> metric_names() const;
  std::vector<Setting> settings() const;
  std::vector<Note> notes() const;
  std::string output_tail(std::string_view stream) const;
  std::vector<Series> all_series() const;
  std::vector<Point> points(const Series& series) const;
  /// Nothing: a record of an earlier schema, whose processes wrote files that are not read any more.
  std::optional<ResumePoint> resume_point() const;
  /// A copy of the record as it is now, in one file that is its owner's alone. Throws kIo (subject: `file`).
  void copy_to(const std::filesystem::path& file) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Meta keys, one place. Values are JSON.
namespace meta {
constexpr std::string_view kCommand = "command";  // [argv]
constexpr std::string_view kFolder = "folder";    // working folder
constexpr std::string_view kStartedUtc = "started_utc";
constexpr std::string_view kStartNs = "start_ns";  // CLOCK_MONOTONIC
constexpr std::string_view kEndNs = "end_ns";      // absent while running or when cut off
constexpr std::string_view kExit = "exit";         // {"code": n, "signal": n, "oom_kills": n where known}
constexpr std::string_view kOutcome = "outcome";   // completed, failed, timed-out, stopped; absent = unknown
constexpr std::string_view kTier = "tier";         // what was seen: "host", "host+probe", ...
constexpr std::string_view kHost =
    "host";  // {"cpus_allowed", "cpu_quota", "memory_bytes", "cpu_model", "cpu_flags": [..], "hostname"}
constexpr std::string_view kGpus = "gpus";               // [{"name", "memory_bytes", "capability": "9.0", ...}]
constexpr std::string_view kProblems = "problems";       // ["what the observer could not do"]
constexpr std::string_view kDropped = "events_dropped";  // number
constexpr std::string_view kPid = "pid";                 // of the command, the root of its tree
}  // namespace meta

/// Names of the series that more than one module uses.
namespace series {
constexpr std::string_view kTreeCpu = "tree.cpu";         // cores in use by the command and its children
constexpr std::string_view kTreeMemory = "tree.memory";   // bytes, proportional where known
constexpr std::string_view kTreeRead = "tree.read";       // bytes/s from storage
constexpr std::string_view kHostCpu = "host.cpu";         // cores in use on the whole machine
constexpr std::string_view kGpuUtil = "gpu.utilisation";  // 0..1
constexpr std::string_view kGpuMemory = "gpu.memory";     // bytes
constexpr std::string_view kGpuPower = "gpu.power";       // W
// Of a training process ("pid N"), in seconds at the time they began.
constexpr std::string_view kStepLog = "step.log";        // printing and logging inside a step
constexpr std::string_view kStepFlush = "step.flush";    // allocator flushed or garbage collected inside a step
constexpr std::string_view kStepDevice = "step.device";  // the time that the device worked for a step
constexpr std::string_view kStepDevicePeriod = "step.device_period";  // of which it worked so long
// Of devices that offer them; docs/record-format.md lists all.
constexpr std::string_view kGpuSmActivity = "gpu.sm_activity";          // 0..1
constexpr std::string_view kGpuTensorActivity = "gpu.tensor_activity";  // 0..1
constexpr std::string_view kGpuPowerLimit = "gpu.power_limit";          // W
constexpr std::string_view kGpuThrottle = "gpu.throttle_reasons";       // bits, telemetry::nvml::kReason...
constexpr std::string_view kGpuPcieGeneration = "gpu.pcie_generation";
constexpr std::string_view kGpuPcieWidth = "gpu.pcie_width";
constexpr std::string_view kGpuOwn = "gpu.own_memory";          // bytes held by the command's tree and its job
constexpr std::string_view kGpuForeign = "gpu.foreign_memory";  // bytes held by processes outside the command's tree
}  // namespace series

/// Makes the folder that `.unidle/runs` gives a new run of `name`, and nobody else. Where it cannot be made it is not
/// there: whoever writes into it will say why.
std::filesystem::path new_run_folder(std::string_view name, Clock& clock = system_clock());

/// What a run of that command is named after: the script rather than the interpreter, "train" for `python train.py`.
/// REQUIRES: a word at least.
std::string run_name(const std::vector<std::string>& command);

/// A folder from new_run_folder that is removed again where nothing came into it.
class RunFolder {
 public:
  explicit RunFolder(std::string_view name) : path_(new_run_folder(name)) {}
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The run that began or ended last, by the `latest` link. Throws kInput when there is none.
std::filesystem::path latest_run_folder();
/// Points `.unidle/runs/latest` at `folder`, atomically. Failure is ignored: the link is a convenience.
void link_latest(const std::filesystem::path& folder);

}  // namespace unidle::record
