// Readings at intervals, on a thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/loose_thread.h"

namespace unidle::telemetry {

/// One reading of one thing. A reading that failed is not there.
struct Reading {
  std::string_view name;  // of the series, e.g. "tree.cpu"; static storage
  std::string_view unit;
  std::string subject;  // "" or "gpu0"
  std::int64_t t_ns = 0;
  double value = 0;
};

using Sink = std::function<void(const Reading&)>;

/// Something that can be read. Called from the sampler's thread only.
class Source {
 public:
  virtual ~Source() = default;
  virtual std::string_view name() const = 0;
  /// May throw: that is a gap in this source's series and nothing else.
  virtual void read(std::int64_t t_ns, const Sink& sink) = 0;
};

/// Four times a second: enough for phases of a second, and below half a percent of one core with its sources
/// (bench/probe_cost measures it).
constexpr std::int64_t kSampleInterval_ns = 250 * kNsPerMs;

/// Reads all sources at every interval until destroyed, on a thread of its own. `sink` is called on that thread; no
/// call after the end. A source may hang (a driver that does not answer): then the thread is left behind with its
/// sources.
class Sampler {
 public:
  using Sources = std::vector<std::unique_ptr<Source>>;

  /// `clock` must outlive it.
  Sampler(Clock& clock, std::int64_t interval_ns, Sources sources, Sink sink);
  /// `make` is called on the sampler's thread, for sources that take their time to be found. What it and `sink` use
  /// they must own or share.
  Sampler(Clock& clock, std::int64_t interval_ns, std::function<Sources()> make, Sink sink);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Ends the readings, waiting a second for one that is under way. False when it did not come back.
  bool end();
  /// Reads that failed, of all sources.
  std::uint64_t failures() const;

 private:
  struct State;

  std::shared_ptr<State> state_;
  LooseThread thread_;
};

/// tree.cpu, tree.memory, tree.read, tree.processes, tree.threads, tree.disk_wait, tree.run_delay, tree.io_delay,
/// tree.major_faults; role.cpu, role.processes and role.run_delay by role.
std::unique_ptr<Source> process_tree_source(std::int64_t root_pid);
/// host.cpu, host.iowait, host.*_pressure, host.memory_available, host.shm, cgroup.throttled, cgroup.memory.
std::unique_ptr<Source> host_source();

}  // namespace unidle::telemetry
