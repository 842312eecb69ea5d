#include "unidle/observe/recorder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/observe/claim.h"
#include "unidle/observe/recovery.h"
#include "unidle/observe/unseen.h"
#include "unidle/telemetry/host.h"
#include "unidle/telemetry/host_state.h"

namespace unidle::observe {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kCollectInterval_ns = 100 * kNsPerMs;
/// How often the last output is written into the record, in case the run is cut off.
constexpr std::int64_t kTailInterval_ns = 5 * kNsPerSecond;

nlohmann::json to_json(const telemetry::HostFacts& facts) {
  nlohmann::json json = {{"hostname", facts.hostname},           {"cpu_model", facts.cpu_model},
                         {"cpu_flags", facts.cpu_flags},         {"cpus_online", facts.cpus_online},
                         {"cpus_affinity", facts.cpus_affinity}, {"cpus_allowed", facts.cpus_allowed()},
                         {"cpus_before_mask", nullptr},          {"cpu_quota", nullptr},
                         {"memory_bytes", facts.memory_bytes},   {"memory_limit", nullptr},
                         {"cpu_bf16", facts.cpu_bf16()}};
  if (facts.cpus_before_mask) {
    json["cpus_before_mask"] = *facts.cpus_before_mask;
  }
  if (facts.cpu_quota) {
    json["cpu_quota"] = *facts.cpu_quota;
  }
  if (facts.memory_limit) {
    json["memory_limit"] = *facts.memory_limit;
  }
  return json;
}

}  // namespace

/// Readings from the sampler's thread for the recorder's thread.
struct Recorder::Queue {
  std::mutex mutex;
  std::vector<telemetry::Reading> readings;
};

Recorder::Recorder(const fs::path& folder, const std::vector<std::string>& argv, Clock& clock)
    : clock_(clock), queue_(std::make_shared<Queue>()) {
  try {
    std::error_code ignored;
    claim(folder, [&](const fs::path& free) {
      name_ = free;
      folder_ = fs::absolute(free);
      made_folder_ = !fs::exists(free, ignored);
      writer_.emplace(free);
    });
    writer_->commit_on_flush_only();
    make_folders(folder_ / "probe");
    lock_ = lock_folder(folder_ / "probe");
    events_.emplace(*writer_);
    collector_.emplace(folder_ / "probe", *writer_, *events_);
  } catch (const std::exception& error) {
    const auto* failure = dynamic_cast<const Error*>(&error);
    if (failure != nullptr && failure->code() == ErrorCode::kUsage) {
      throw;
    }
    spdlog::warn("{}; the command runs unobserved", error.what());
    abandon();
  }
  write_start(argv);
}

Recorder::~Recorder() = default;

void Recorder::close() {
  collector_.reset();
  events_.reset();
  writer_.reset();
  lock_.reset();
}

void Recorder::guarded(const std::function<void(record::Writer&)>& work) {
  if (!writer_) {
    return;
  }
  try {
    work(*writer_);
  } catch (const std::exception& error) {
    spdlog::warn("recording ends here, the command runs on: {}", error.what());
    close();
  }
}

void Recorder::write_start(const std::vector<std::string>& argv) {
  guarded([&](record::Writer& writer) {
    std::error_code ignored;
    writer.set_meta(record::meta::kCommand, argv);
    writer.set_meta(record::meta::kFolder, fs::current_path(ignored).string());
    writer.set_meta(record::meta::kStartedUtc, format_utc(clock_.wall_ns()));
    writer.set_meta(record::meta::kStartNs, clock_.now_ns());
    writer.set_meta(record::meta::kTier, "host");
    writer.set_meta(record::meta::kHost, to_json(telemetry::read_host_facts()));
    writer.flush();
  });
}

void Recorder::add_configured(const std::vector<record::Setting>& settings) {
  guarded([&](record::Writer& writer) {
    for (const record::Setting& setting : settings) {
      writer.add(setting);
    }
  });
}

void Recorder::add_run_options(const nlohmann::json& options) {
  if (!options.empty()) {
    guarded([&](record::Writer& writer) { writer.set_meta(record::meta::kRunOptions, options); });
  }
}

std::optional<fs::path> Recorder::probe_folder() const {
  return writer_ ? std::optional(folder_ / "probe") : std::nullopt;
}

void Recorder::start(std::int64_t root_pid, const OutputStreams& streams) {
  if (!writer_) {
    return;
  }
  streams_ = &streams;
  root_pid_ = root_pid;
  oom_kills_ = telemetry::read_cgroup_use().oom_kills;
  started_ns_ = clock_.now_ns();
  guarded([&](record::Writer& writer) {
    writer.set_meta(record::meta::kPid, root_pid);
    const telemetry::Sink sink = [queue = queue_](const telemetry::Reading& reading) {
      const std::lock_guard lock(queue->mutex);
      queue->readings.push_back(reading);
    };
    telemetry::Sampler::Sources sources;
    sources.push_back(telemetry::process_tree_source(root_pid));
    sources.push_back(telemetry::host_source());
    sampler_ = std::make_unique<telemetry::Sampler>(clock_, telemetry::kSampleInterval_ns, std::move(sources), sink);
    devices_ = std::make_unique<Devices>(clock_, root_pid, sink);
    thread_ = std::jthread([this](std::stop_token stop) { loop(std::move(stop)); });
  });
}

void Recorder::loop(std::stop_token stop) {
  std::int64_t next = clock_.now_ns();
  do {
    collect(false);
    next += kCollectInterval_ns;
    next = std::max(next, clock_.now_ns());
  } while (writer_ && clock_.sleep_until(next, stop));
}

void Recorder::collect(bool everything) {
  const std::int64_t now = clock_.now_ns();
  guarded([&](record::Writer& writer) {
    everything ? collector_->take_all_events() : collector_->take_events();
    take_devices();
    take_readings();
    if (everything || now >= next_second_ns_ || collector_->nearly_full()) {
      next_second_ns_ = now + kNsPerSecond;
      collector_->take_notes(now);
      look_for_unseen();
      events_->write_work();
      write_tails(everything);
      collector_->write_positions();
      writer.flush();
      collector_->settle();
    }
  });
}

/// While no process writes events, looks for one that should. The interval grows, because looking costs the processes a
/// little.
void Recorder::look_for_unseen() {
  const std::int64_t now = clock_.now_ns();
  if (unseen_told_ || collector_->has_rings() || now < next_unseen_ns_) {
    return;
  }
  next_unseen_ns_ = now + std::max(kNsPerSecond, (now - started_ns_) / 4);
  if (const auto unseen = find_unseen(root_pid_, collector_->reporting())) {
    unseen_told_ = true;
    events_->take_note(unseen->pid, now,
                       {{"type", "unseen"}, {"command", unseen->command}, {"why", to_string(unseen->why)}});
  }
}

void Recorder::take_readings() {
  std::vector<telemetry::Reading> readings;
  {
    const std::lock_guard lock(queue_->mutex);
    readings.swap(queue_->readings);
  }
  for (const telemetry::Reading& reading : readings) {
    const std::int64_t series =
        writer_->series({std::string(reading.name), std::string(reading.unit), reading.subject});
    writer_->add_point(series, {reading.t_ns, reading.value});
  }
}

void Recorder::take_devices() {
  const auto found = devices_ ? devices_->take_found() : std::nullopt;
  if (!found) {
    return;
  }
  nvml_seen_ = found->nvml;
  if (!found->problem.empty()) {
    problems_.push_back(found->problem);
  }
  if (found->gpus) {
    writer_->set_meta(record::meta::kGpus, *found->gpus);
  }
}

void Recorder::write_tails(bool everything) {
  const std::uint64_t total = streams_->total();
  const std::int64_t now = clock_.now_ns();
  if (total == tail_bytes_written_ || (now < next_tail_ns_ && !everything)) {
    return;
  }
  tail_bytes_written_ = total;
  next_tail_ns_ = now + kTailInterval_ns;
  writer_->set_output_tail("stdout", streams_->tail(1));
  if (!streams_->is_shared()) {
    writer_->set_output_tail("stderr", streams_->tail(2));
  }
}

void Recorder::finish(const std::optional<ExitStatus>& status, std::string_view outcome,
                      const std::function<void(record::Writer&, const fs::path&)>& before_close) {
  const std::int64_t end_ns = clock_.now_ns();
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  end_readings();
  guarded([&](record::Writer& writer) {
    writer.set_meta(record::meta::kEndNs, end_ns);
    collect(true);
  });
  write_end(status, outcome);
  if (before_close) {
    guarded([&](record::Writer& writer) { before_close(writer, folder_); });
  }
  guarded([&](record::Writer& writer) {
    collector_->remove_files();
    writer.flush();
  });
  close();
}

/// A read may hang, in a driver or in /proc; the thread is then abandoned.
void Recorder::end_readings() {
  std::uint64_t failures = 0;
  if (devices_) {
    if (const auto problem = devices_->end()) {
      problems_.push_back(*problem);
    }
    failures += devices_->failures();
  }
  if (sampler_) {
    if (!sampler_->end()) {
      problems_.push_back("the host was not read to the end: the kernel did not answer");
    }
    failures += sampler_->failures();
  }
  if (failures > 0) {
    problems_.push_back(fmt::format("{} readings of the host failed", failures));
  }
}

void Recorder::write_end(const std::optional<ExitStatus>& status, std::string_view outcome) {
  guarded([&](record::Writer&) {
    const std::vector<std::string> more = collector_->problems();
    problems_.insert(problems_.end(), more.begin(), more.end());
    if (const std::uint64_t dropped = collector_->dropped(); dropped > 0) {
      problems_.push_back(fmt::format("{} events were dropped because a ring was full", dropped));
    }
    const std::uint64_t events = collector_->events_refused();
    const std::uint64_t notes = collector_->notes_refused();
    if (events + notes > 0) {
      problems_.push_back(fmt::format("{} events and {} notes could not be understood", events, notes));
    }
  });
  guarded([&](record::Writer& writer) {
    events_->write_work();
    nlohmann::json exit = nlohmann::json::object();
    if (status) {
      exit = {{"code", status->code}, {"signal", status->signal}};
    }
    // The kernel reports a kill for lack of memory only here.
    if (const auto kills = telemetry::read_cgroup_use().oom_kills; kills && oom_kills_ && *kills >= *oom_kills_) {
      exit["oom_kills"] = *kills - *oom_kills_;
    }
    writer.set_meta(record::meta::kExit, exit);
    if (!outcome.empty()) {
      writer.set_meta(record::meta::kOutcome, outcome);
    }
    writer.set_meta(record::meta::kTier,
                    fmt::format("host{}{}{}", nvml_seen_ ? "+nvml" : "", collector_->probe_seen() ? "+probe" : "",
                                collector_->python_seen() ? "+python" : ""));
    writer.set_meta(record::meta::kDropped, collector_->dropped());
    writer.set_meta(record::meta::kProblems, problems_);
    writer.flush();
  });
}

void Recorder::abandon() {
  const bool made = writer_.has_value();
  close();
  std::error_code ignored;
  if (made) {
    fs::remove(folder_ / "record.db", ignored);
    ::rmdir((folder_ / "probe").c_str());  // fails unless empty
  }
  if (made_folder_) {
    ::rmdir(folder_.c_str());
  }
}

}  // namespace unidle::observe
