// Converts events of rings to rows of the record.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

#include "unidle/probe/ring.h"
#include "unidle/record/record.h"

namespace unidle::observe {

/// Writes events as rows of the record, samples as sums over one second, and notes as settings and metrics. Keeps
/// only the sums since the last write_work() and, for each process, the last step written. Not thread-safe.
class EventWriter {
 public:
  /// `writer` must outlive it.
  explicit EventWriter(record::Writer& writer) : writer_(writer) {}

  void take(std::int64_t process, const probe::Slot& slot);
  void take_step(std::int64_t process, const unidle_step& step);
  void take_note(std::int64_t process, std::int64_t t_ns, nlohmann::json body);
  /// What the record of a killed recorder already holds.
  void resume(const record::ResumePoint& point) { last_steps_ = point.last_steps; }
  /// Steps of a process before `index` are in the record: ignore them.
  void skip_steps_before(std::int64_t process, std::int64_t index) { first_[process] = index; }
  std::int64_t steps_of(std::int64_t process) const;
  /// Drops the state of a process that has ended.
  void forget(std::int64_t process);
  /// Writes the sums since the last call. Call before each commit.
  void write_work();
  std::uint64_t steps() const { return steps_; }

 private:
  using WorkKey = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // start of second, process, thread

  void add_work(std::int64_t process, const unidle_event& event);
  void write_span(std::int64_t process, const unidle_event& event, const char* kind, std::uint64_t samples);
  void write_point(std::int64_t process, std::uint64_t t_ns, std::uint64_t ns, std::string_view name);
  void write_loss(const unidle_event& event);
  void write_device(std::int64_t process, const unidle_event& event);
  void write_kernels(const unidle_event& event);

  record::Writer& writer_;
  std::map<std::int64_t, std::int64_t> last_steps_;  // last step written, by process
  std::map<std::int64_t, std::int64_t> first_;       // first step to write if not 0, by process
  std::uint64_t steps_ = 0;
  std::map<WorkKey, record::SampleWork> work_;
};

}  // namespace unidle::observe
