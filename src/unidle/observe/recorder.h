// Everything that goes into the record of one run, on a thread of its own.
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
#include "unidle/observe/collector.h"
#include "unidle/observe/devices.h"
#include "unidle/observe/events.h"
#include "unidle/observe/output.h"
#include "unidle/record/record.h"
#include "unidle/telemetry/sampler.h"

namespace unidle::observe {

/// Owns the writer. Trouble with the record is said once, as a warning, and ends the recording and nothing else.
class Recorder {
 public:
  /// Makes the record, under another name when another run has it. Throws kUsage when a finished one is there; any
  /// other trouble: warns and records nothing.
  Recorder(const std::filesystem::path& folder, const std::vector<std::string>& argv, Clock& clock = system_clock());
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Puts what configuration files set into the record, beside what the live program will tell.
  void add_configured(const std::vector<record::Setting>& settings);
  /// Where the record is, as it was asked for.
  const std::filesystem::path& folder() const { return name_; }
  /// Where the command's processes put their rings; nothing when there is no record.
  std::optional<std::filesystem::path> probe_folder() const;
  /// Starts to collect. `streams` must outlive finish().
  void start(std::int64_t root_pid, const OutputStreams& streams);
  /// The command has ended: collects the rest, lets `before_close` add to it (empty: nothing) and closes the record.
  void finish(int code, int signal, std::string_view outcome,
              const std::function<void(record::Writer&, const std::filesystem::path&)>& before_close);
  /// The command never started: removes what was made.
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
  void write_end(int code, int signal, std::string_view outcome);
  void close();
  /// Runs `work` with the writer; a failure ends the recording.
  void guarded(const std::function<void(record::Writer&)>& work);

  std::filesystem::path name_;
  std::filesystem::path folder_;  // absolute: the command may be given a working folder of its own
  bool made_folder_ = false;
  Clock& clock_;
  std::optional<record::Writer> writer_;
  UniqueFd lock_;  // on the probe folder: somebody records
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
  std::optional<std::uint64_t> oom_kills_;  // of our group of processes, before the command began
  std::int64_t started_ns_ = 0;
  std::int64_t next_unseen_ns_ = 0;
  std::int64_t next_tail_ns_ = 0;
  std::unique_ptr<telemetry::Sampler> sampler_;
  std::unique_ptr<Devices> devices_;
  std::jthread thread_;
};

}  // namespace unidle::observe
