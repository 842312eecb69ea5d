// The run record: one SQLite file per run, `record.db` in the record's folder. docs/record-format.md documents it.
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

/// Stored in every record; a reader refuses a newer version.
constexpr int kSchemaVersion = 2;

/// One optimiser step of one process, with the time of its parts. Times in ns; parts that were not measured are absent.
struct Step {
  std::int64_t process = 0;  // pid
  std::int64_t index = 0;
  std::int64_t t_ns = 0;  // start, CLOCK_MONOTONIC
  std::int64_t duration_ns = 0;
  std::int64_t samples = 0;
  std::int64_t micro_batches = 1;
  std::optional<std::int64_t> input_ns;
  std::optional<std::int64_t> transfer_ns;
  std::optional<std::int64_t> forward_ns;
  std::optional<std::int64_t> backward_ns;
  std::optional<std::int64_t> optimizer_ns;
  std::optional<std::int64_t> sync_ns;
  std::optional<std::int64_t> syncs;  // number of waits in sync_ns
  std::optional<double> loss;
  std::optional<std::int64_t> samples_before;  // samples seen before this step
};

/// A start-up, validation or checkpoint; it may overlap a step.
struct Span {
  std::string kind;  // "startup", "validate", "checkpoint"
  std::int64_t process = 0;
  std::int64_t t_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t samples = 0;
};

/// Samples that one loader thread or process produced: exact sums over one second.
struct SampleWork {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  std::int64_t t_ns = 0;  // start of the second
  std::int64_t samples = 0;
  std::int64_t busy_ns = 0;
  std::int64_t slowest_ns = 0;
  std::int64_t bytes = 0;
};

/// A metric that the training program reports, e.g. "loss", "psnr".
struct Metric {
  std::string name;
  std::int64_t t_ns = 0;
  std::int64_t step = 0;
  std::int64_t samples = 0;  // seen so far
  double value = 0;
};

/// A setting from the configuration or from the running program.
struct Setting {
  std::string knob;
  std::string value;
  std::string source;    // "configured", "written", "effective", "environment", "unnamed" or "argument"
  std::string location;  // "file:line", the flag, or the name of the variable, key or argument; may be empty
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

/// How far the recorder has read one process's event file: docs/record-format.md, table `positions`.
struct Position {
  std::string file;
  std::int64_t process = 0;
  std::int64_t process_start = 0;  // in clock ticks since boot; 0: unknown
  std::int64_t started_ns = 0;     // identifies the file together with its name
  std::int64_t taken = 0;
};

/// What a recorder needs in order to resume a record.
struct ResumePoint {
  std::vector<Position> positions;
  std::map<std::int64_t, std::int64_t> last_steps;  // by process
  std::set<std::int64_t> processes;                 // all processes in the record
};

/// Whether a writer creates a record or resumes one that was cut off.
enum class Begin { kNew, kResume };

/// Writes a record. Not thread-safe: one thread owns it. Commits once a second and on flush(), so that a record cut off
/// by kill -9 stays readable up to the last commit. Throws kIo (subject: the file) on a full disk or an unwritable
/// folder; after that the record is closed and further calls do nothing.
class Writer {
 public:
  /// Creates `folder` and `record.db` in it; throws kUsage if the record exists.
  /// kResume: resumes the existing record; throws kIo if that fails. Only one writer may be open at a time.
  /// `clock` determines when to commit, and must outlive the writer.
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
  /// The end of the command's output, as kept by the supervisor; replaces the previous value.
  void set_output_tail(std::string_view stream, std::string_view bytes);
  /// Returns the id of a series within this record; equal series have equal ids.
  std::int64_t series(const Series& series);
  void add_point(std::int64_t series, Point point);
  void set(const Position& position);
  void drop_position(std::string_view file);
  void drop_positions();
  void flush();
  /// From now on only flush() commits: all that is written between two calls is stored, or nothing.
  void commit_on_flush_only();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads a record, also while it is being written. Throws kInput (subject: the path) when it is not a record, is
/// damaged, or has a newer schema.
class Reader {
 public:
  /// `path`: the folder or the record.db in it.
  explicit Reader(const std::filesystem::path& path);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  const std::filesystem::path& folder() const;
  /// Its record.db.
  const std::filesystem::path& file() const;
  std::optional<nlohmann::json> meta(std::string_view key) const;
  /// Value of kStartNs or kEndNs; nothing if it is missing or not a time.
  std::optional<std::int64_t> time(std::string_view key) const;
  std::map<std::string, nlohmann::json> all_meta() const;
  std::vector<Step> steps() const;
  /// The last `most` steps, in order.
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
  /// Nothing for a record of an earlier schema: the event files of its processes can no longer be read.
  std::optional<ResumePoint> resume_point() const;
  /// Copies the record in its current state to one file that only its owner can read. Throws kIo (subject: `file`).
  void copy_to(const std::filesystem::path& file) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Keys of `meta`. Values are JSON.
namespace meta {
constexpr std::string_view kCommand = "command";  // [argv]
constexpr std::string_view kFolder = "folder";    // working folder
constexpr std::string_view kRunOptions =
    "run_options";  // of unidle run: {"steps", "timeout_s", "apply": {knob: value}}
constexpr std::string_view kStartedUtc = "started_utc";
constexpr std::string_view kStartNs = "start_ns";  // CLOCK_MONOTONIC
constexpr std::string_view kEndNs = "end_ns";      // absent while running or when cut off
constexpr std::string_view kExit = "exit";         // {"code": n, "signal": n, "oom_kills": n}, each if known
constexpr std::string_view kOutcome = "outcome";   // completed, failed, timed-out, stopped; absent = unknown
constexpr std::string_view kTier = "tier";         // sources of data: "host", "host+probe", ...
constexpr std::string_view kHost =
    "host";  // {"cpus_allowed", "cpu_quota", "memory_bytes", "cpu_model", "cpu_flags": [..], "hostname"}
constexpr std::string_view kGpus = "gpus";               // [{"name", "memory_bytes", "capability": "9.0", ...}]
constexpr std::string_view kProblems = "problems";       // ["what the observer could not do"]
constexpr std::string_view kDropped = "events_dropped";  // number
constexpr std::string_view kPid = "pid";                 // process id of the command, the root of its tree
constexpr std::string_view kKind = "kind";               // "optimize" for a search; absent for a run
constexpr std::string_view kSearch = "optimize";
constexpr std::string_view kSearchedBy = "searched_by";  // of a search, the command: "fix", "optimize"
}  // namespace meta

/// Names of the series that more than one module uses.
namespace series {
constexpr std::string_view kTreeCpu = "tree.cpu";             // cores in use by the command and its children
constexpr std::string_view kTreeMemory = "tree.memory";       // bytes, proportional set size if known
constexpr std::string_view kTreeRead = "tree.read";           // bytes/s from storage
constexpr std::string_view kTreeRunDelay = "tree.run_delay";  // cores that its threads stood ready for without one
constexpr std::string_view kHostCpu = "host.cpu";             // cores in use on the whole machine
constexpr std::string_view kGpuUtil = "gpu.utilisation";      // 0..1
constexpr std::string_view kGpuMemory = "gpu.memory";         // bytes
constexpr std::string_view kGpuPower = "gpu.power";           // W
// Of a training process ("pid N"): durations in seconds, at the time they began.
constexpr std::string_view kStepLog = "step.log";        // printing and logging inside a step
constexpr std::string_view kStepFlush = "step.flush";    // allocator flushed or garbage collected inside a step
constexpr std::string_view kStepDevice = "step.device";  // device time of a step
constexpr std::string_view kStepDevicePeriod = "step.device_period";  // the period in which the device worked that long
// Only from devices that offer them; docs/record-format.md lists all.
constexpr std::string_view kGpuPowerLimit = "gpu.power_limit";     // W
constexpr std::string_view kGpuThrottle = "gpu.throttle_reasons";  // bits, telemetry::nvml::kReason...
constexpr std::string_view kGpuPcieGeneration = "gpu.pcie_generation";
constexpr std::string_view kGpuPcieWidth = "gpu.pcie_width";
constexpr std::string_view kGpuOwn = "gpu.own_memory";          // bytes held by the command's processes and its job
constexpr std::string_view kGpuForeign = "gpu.foreign_memory";  // bytes held by other processes
}  // namespace series

/// Creates a new folder in `.unidle/runs` for a run of `name` that no other run gets. If that fails, the folder does
/// not exist, and the first write into it reports why.
std::filesystem::path new_run_folder(std::string_view name, Clock& clock = system_clock());

/// Names a run after its command: the script rather than the interpreter, "train" for `python train.py`.
/// REQUIRES: `command` is not empty.
std::string run_name(const std::vector<std::string>& command);

/// Owns a folder from new_run_folder and removes it again if it stays empty.
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

/// The record that a person means by `text`: a path that exists, or of the runs in `.unidle/runs` "latest", a name, a
/// part of only one name, or "-1" for the newest by name, "-2" for the one before. A text with a slash is a path.
/// Throws kInput when nothing or several are meant.
std::filesystem::path find_run(const std::string& text);
/// The newest run by name, and before it the newest earlier run of the same program. Throws kInput when there is none.
std::pair<std::filesystem::path, std::filesystem::path> last_two_runs();
/// Runs of the same program that by name began before this one of `.unidle/runs`, newest first; also searches. None is
/// opened. Empty for a record elsewhere.
std::vector<std::filesystem::path> earlier_runs(const std::filesystem::path& folder);
/// The most recent run to begin or end, from the `latest` link. Throws kInput when there is none.
std::filesystem::path latest_run_folder();
/// Points `.unidle/runs/latest` at `folder`, atomically. Failure is ignored: the link is a convenience.
void link_latest(const std::filesystem::path& folder);

}  // namespace unidle::record
