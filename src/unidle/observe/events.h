// From events of rings to rows of the record.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

#include "unidle/probe/unidle_probe.h"
#include "unidle/record/record.h"

namespace unidle::observe {

/// Joins the parts of a step into one row, samples into seconds, notes into settings and metrics. Not thread-safe.
class EventMerger {
 public:
  /// `writer` must outlive it.
  explicit EventMerger(record::Writer& writer) : writer_(writer) {}

  void take(std::int64_t process, const unidle_event& event);
  /// An event that a recorder before us has taken: what it still held of it when it was killed is taken once more.
  /// `open`: it may belong to a step that was not over.
  void take_again(std::int64_t process, const unidle_event& event, bool open);
  /// What the record holds of its processes already, where one before us was killed.
  void resume(const record::ResumePoint& point);
  /// Steps of a process before this one are in the record, however often they come.
  void skip_steps_before(std::int64_t process, std::int64_t index) { first_[process] = index; }
  std::int64_t steps_of(std::int64_t process) const;
  /// Nothing more comes from it.
  void forget(std::int64_t process);
  void take_note(std::int64_t process, std::int64_t t_ns, nlohmann::json body);
  /// Writes the seconds of sample work that lie before `now_ns` by two seconds and more.
  void write_seconds(std::int64_t now_ns);
  /// Writes all that is still held.
  void finish();
  /// Steps of which there are parts but no end yet.
  std::size_t open_steps() const { return parts_.size(); }
  bool has_open_step(std::int64_t process) const;
  /// Steps written so far.
  std::uint64_t steps() const { return steps_; }

 private:
  using StepKey = std::pair<std::int64_t, std::int64_t>;                 // process, step
  using WorkKey = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // begin of second, process, thread

  record::Step& open_step(std::int64_t process, std::int64_t index);
  void add_part(std::int64_t process, const unidle_event& event);
  void add_loss(std::int64_t process, const unidle_event& event);
  void write_step(std::int64_t process, const unidle_event& event);
  void add_work(std::int64_t process, const unidle_event& event);
  void write_span(std::int64_t process, const unidle_event& event, const char* kind, std::uint64_t samples);
  void write_point(std::int64_t process, const unidle_event& event, std::string_view name);
  void write_device(std::int64_t process, const unidle_event& event);
  void write_kernels(const unidle_event& event);

  record::Writer& writer_;
  std::map<StepKey, record::Step> parts_;         // of steps that are not over
  std::map<std::int64_t, std::int64_t> written_;  // the last step written, by process
  std::map<std::int64_t, std::int64_t> first_;    // the first step to be written, where that is not 0
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> seconds_;  // resumed: the last one written, by thread
  std::uint64_t steps_ = 0;
  std::map<WorkKey, record::SampleWork> work_;
};

}  // namespace unidle::observe
