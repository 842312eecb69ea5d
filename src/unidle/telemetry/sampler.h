// Takes periodic readings on its own thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/base/abandonable_thread.h"
#include "unidle/base/clock.h"

namespace unidle::telemetry {

/// One value of one series. Failed readings are left out.
struct Reading {
  std::string_view name;  // of the series, e.g. "tree.cpu"; static storage
  std::string_view unit;
  std::string subject;  // "" or "gpu0"
  std::int64_t t_ns = 0;
  double value = 0;
};

using Sink = std::function<void(const Reading&)>;

/// Something that can be read. Called on the sampler's thread only.
class Source {
 public:
  virtual ~Source() = default;
  virtual std::string_view name() const = 0;
  /// May throw, which leaves a gap in this source's series only.
  virtual void read(std::int64_t t_ns, const Sink& sink) = 0;
};

/// Four times a second resolves phases of a second and, with the sampler's own sources, costs less than half a percent
/// of one core (bench/probe_cost).
constexpr std::int64_t kSampleInterval_ns = 250 * kNsPerMs;

/// Reads all sources at every interval on its own thread until destroyed. Calls `sink` on that thread, never after the
/// end. When a source hangs (a driver that does not answer), the thread and its sources are abandoned.
class Sampler {
 public:
  using Sources = std::vector<std::unique_ptr<Source>>;

  /// `clock` must outlive it.
  Sampler(Clock& clock, std::int64_t interval_ns, Sources sources, Sink sink);
  /// `make` runs on the sampler's thread, for sources that take time to find. It and `sink` must own or share
  /// everything they use.
  Sampler(Clock& clock, std::int64_t interval_ns, std::function<Sources()> make, Sink sink);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Stops the readings and waits up to a second for the current one. Returns false when it did not finish.
  bool end();
  /// Number of failed readings, of all sources.
  std::uint64_t failures() const;

 private:
  struct State;

  std::shared_ptr<State> state_;
  AbandonableThread thread_;
};

/// tree.cpu, tree.memory, tree.read, tree.processes, tree.threads, tree.disk_wait, tree.run_delay, tree.io_delay,
/// tree.major_faults; role.cpu, role.processes and role.run_delay by role.
std::unique_ptr<Source> process_tree_source(std::int64_t root_pid);
/// host.cpu, host.iowait, host.*_pressure, host.memory_available, host.shm, cgroup.throttled, cgroup.memory.
std::unique_ptr<Source> host_source();

}  // namespace unidle::telemetry
