// Writes the record of one run, on a thread of its own.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/handle.h"
#include "unidle/base/process.h"
#include "unidle/observe/collector.h"
#include "unidle/observe/devices.h"
#include "unidle/observe/events.h"
#include "unidle/observe/output.h"
#include "unidle/record/record.h"
#include "unidle/telemetry/sampler.h"

namespace unidle::observe {

/// Owns the writer. A problem with the record is reported once, as a warning; it ends the recording and nothing else.
class Recorder {
 public:
  /// Creates the record, under another name when another run has it. Throws kUsage when a finished record is there. On
  /// any other error, warns and records nothing.
  Recorder(const std::filesystem::path& folder, const std::vector<std::string>& argv, Clock& clock = system_clock());
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Adds the settings of configuration files to the record, beside those that the program will report.
  void add_configured(const std::vector<record::Setting>& settings);
  /// Adds the options of `unidle run` with which such a run is started again.
  void add_run_options(const nlohmann::json& options);
  /// The record's folder, as the user gave it.
  const std::filesystem::path& folder() const { return name_; }
  /// The folder in which the command's processes create their rings; nothing without a record.
  std::optional<std::filesystem::path> probe_folder() const;
  /// Starts collecting. `streams` must outlive finish().
  void start(std::int64_t root_pid, const OutputStreams& streams);
  /// Call when the command has ended. Collects the rest, calls `before_close` unless it is empty, and closes the
  /// record. Without `status` it is unknown how it ended; an empty `outcome` is unknown.
  void finish(const std::optional<ExitStatus>& status, std::string_view outcome,
              const std::function<void(record::Writer&, const std::filesystem::path&)>& before_close);
  /// Removes the record of a command that never started.
  void abandon();

 private:
  struct Queue;

  void write_start(const std::vector<std::string>& argv);
  void loop(std::stop_token stop);
  void collect(bool everything);
  void look_for_unseen();
  void take_devices();
  void take_readings();
  void end_readings();
  void write_tails(bool everything);
  void write_end(const std::optional<ExitStatus>& status, std::string_view outcome);
  void close();
  /// Runs `work` with the writer; a failure ends the recording.
  void guarded(const std::function<void(record::Writer&)>& work);

  std::filesystem::path name_;
  std::filesystem::path folder_;  // absolute: the command may have a working folder of its own
  bool made_folder_ = false;
  Clock& clock_;
  std::optional<record::Writer> writer_;
  UniqueFd lock_;  // on the probe folder: shows that a recorder lives
  std::optional<EventWriter> events_;
  std::optional<Collector> collector_;
  std::shared_ptr<Queue> queue_;
  bool nvml_seen_ = false;
  bool unseen_told_ = false;
  std::vector<std::string> problems_;
  const OutputStreams* streams_ = nullptr;
  std::uint64_t tail_bytes_written_ = 0;
  std::int64_t next_second_ns_ = 0;
  std::int64_t root_pid_ = 0;
  std::optional<std::uint64_t> oom_kills_;  // of our cgroup, before the command started
  std::int64_t started_ns_ = 0;
  std::int64_t next_unseen_ns_ = 0;
  std::int64_t next_tail_ns_ = 0;
  std::unique_ptr<telemetry::Sampler> sampler_;
  std::unique_ptr<Devices> devices_;
  std::jthread thread_;
};

}  // namespace unidle::observe
