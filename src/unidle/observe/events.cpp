#include "unidle/observe/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/base/json.h"
#include "unidle/probe/event_types.h"

namespace unidle::observe {

using probe::EventOf;

namespace {

/// Parts whose step never came (a program that reports no steps) must not pile up.
constexpr std::size_t kMaxOpenSteps = 4096;

std::int64_t signed_value(std::uint64_t value) { return static_cast<std::int64_t>(value); }

/// A count that came as a floating-point number; 0 when it is none.
std::int64_t whole(double value) { return value >= 1 && value < 1e15 ? static_cast<std::int64_t>(value) : 0; }

/// The sum, or the largest number that there is: a ring may claim anything.
void add_to(std::int64_t& sum, std::int64_t value) { sum = __builtin_add_overflow(sum, value, &sum) ? INT64_MAX : sum; }

void add_to(std::optional<std::int64_t>& sum, std::int64_t value) {
  sum = sum.value_or(0);
  add_to(*sum, value);
}

std::string text_of(const nlohmann::json& body, const char* key) {
  const auto found = body.find(key);
  if (found == body.end()) {
    return {};
  }
  return plain_text(*found);
}

std::int64_t integer_of(const nlohmann::json& body, const char* key, std::int64_t otherwise) {
  const auto found = body.find(key);
  return found != body.end() && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
}

}  // namespace

void EventMerger::take(std::int64_t process, const unidle_event& event) {
  switch (event.kind) {
    case UNIDLE_EVENT_STEP: write_step(process, event); break;
    case UNIDLE_EVENT_LOSS: add_loss(process, event); break;
    case UNIDLE_EVENT_SAMPLE: add_work(process, event); break;
    case UNIDLE_EVENT_STARTUP: write_span(process, event, "startup", 0); break;
    case UNIDLE_EVENT_VALIDATE:
      write_span(process, event, "validate", EventOf<UNIDLE_EVENT_VALIDATE>(event).count("samples"));
      break;
    case UNIDLE_EVENT_CHECKPOINT: write_span(process, event, "checkpoint", 0); break;
    case UNIDLE_EVENT_LOG: write_point(process, event, record::series::kStepLog); break;
    case UNIDLE_EVENT_FLUSH: write_point(process, event, record::series::kStepFlush); break;
    case UNIDLE_EVENT_LOADER_START: write_point(process, event, record::series::kLoaderStart); break;
    case UNIDLE_EVENT_DEVICE: write_device(process, event); break;
    case UNIDLE_EVENT_KERNELS: write_kernels(event); break;
    default: add_part(process, event); break;
  }
}

void EventMerger::resume(const record::ResumePoint& point) {
  written_ = point.last_steps;
  seconds_ = point.last_seconds;
}

void EventMerger::take_again(std::int64_t process, const unidle_event& event, bool open) {
  const auto last = written_.find(process);
  const bool told = last != written_.end() && signed_value(event.step) <= last->second;
  if (event.kind == UNIDLE_EVENT_SAMPLE) {
    const auto second = seconds_.find({process, event.thread});
    const std::int64_t end_ns = signed_value(event.t_ns + event.duration_ns);
    if (second == seconds_.end() || end_ns - end_ns % kNsPerSecond > second->second) {
      add_work(process, event);
    }
  } else if (open && !told && event.kind == UNIDLE_EVENT_LOSS) {
    add_loss(process, event);
  } else if (open && !told && event.kind >= UNIDLE_EVENT_INPUT && event.kind <= UNIDLE_EVENT_SYNC) {
    add_part(process, event);
  }
}

bool EventMerger::has_open_step(std::int64_t process) const {
  const auto found = parts_.lower_bound({process, INT64_MIN});
  return found != parts_.end() && found->first.first == process;
}

std::int64_t EventMerger::steps_of(std::int64_t process) const {
  const auto last = written_.find(process);
  return last == written_.end() ? 0 : last->second + 1;
}

void EventMerger::forget(std::int64_t process) {
  parts_.erase(parts_.lower_bound({process, INT64_MIN}), parts_.upper_bound({process, INT64_MAX}));
  written_.erase(process);
  first_.erase(process);
}

record::Step& EventMerger::open_step(std::int64_t process, std::int64_t index) {
  if (parts_.size() >= kMaxOpenSteps && !parts_.contains({process, index})) {
    parts_.erase(parts_.begin());
  }
  return parts_[{process, index}];
}

void EventMerger::add_part(std::int64_t process, const unidle_event& event) {
  record::Step& step = open_step(process, signed_value(event.step));
  const std::int64_t duration_ns = signed_value(event.duration_ns);
  switch (event.kind) {
    case UNIDLE_EVENT_INPUT: add_to(step.input_ns, duration_ns); break;
    case UNIDLE_EVENT_TRANSFER: add_to(step.transfer_ns, duration_ns); break;
    case UNIDLE_EVENT_FORWARD: add_to(step.forward_ns, duration_ns); break;
    case UNIDLE_EVENT_BACKWARD: add_to(step.backward_ns, duration_ns); break;
    case UNIDLE_EVENT_OPTIMIZER: add_to(step.optimizer_ns, duration_ns); break;
    case UNIDLE_EVENT_SYNC:
      add_to(step.sync_ns, duration_ns);
      add_to(step.syncs, std::max<std::int64_t>(1, whole(EventOf<UNIDLE_EVENT_SYNC>(event).number("waits"))));
      break;
    default: break;
  }
}

void EventMerger::add_loss(std::int64_t process, const unidle_event& event) {
  const EventOf<UNIDLE_EVENT_LOSS> loss(event);
  const std::int64_t samples_before = signed_value(loss.count("samples_before"));
  const std::int64_t index = signed_value(event.step);
  const auto last = written_.find(process);
  if (last != written_.end() && index <= last->second) {
    // Read back later than its step ended; the row is written.
    writer_.add(record::Metric{"loss", signed_value(event.t_ns), index, samples_before, loss.number("loss")});
    return;
  }
  record::Step& step = open_step(process, index);
  step.loss = loss.number("loss");
  step.samples_before = samples_before;
}

void EventMerger::write_step(std::int64_t process, const unidle_event& event) {
  const std::int64_t index = signed_value(event.step);
  record::Step step;
  if (auto parts = parts_.extract({process, index})) {
    step = parts.mapped();
  }
  const auto first = first_.find(process);
  if (first != first_.end() && index < first->second) {
    return;
  }
  step.process = process;
  step.index = index;
  step.t_ns = signed_value(event.t_ns);
  step.duration_ns = signed_value(event.duration_ns);
  const EventOf<UNIDLE_EVENT_STEP> whole_step(event);
  step.samples = signed_value(whole_step.count("samples"));
  step.micro_batches = std::max<std::int64_t>(signed_value(whole_step.count("micro_batches")), 1);
  written_[process] = index;
  steps_ += 1;
  writer_.add(step);
}

void EventMerger::add_work(std::int64_t process, const unidle_event& event) {
  const std::int64_t end_ns = signed_value(event.t_ns + event.duration_ns);
  const std::int64_t second_ns = end_ns - end_ns % kNsPerSecond;
  const std::int64_t duration_ns = signed_value(event.duration_ns);
  record::SampleWork& work = work_[{second_ns, process, event.thread}];
  work.process = process;
  work.thread = event.thread;
  work.t_ns = second_ns;
  const EventOf<UNIDLE_EVENT_SAMPLE> made(event);
  const std::int64_t several = whole(made.number("samples"));
  const std::int64_t slowest_ns = std::min(signed_value(made.count("slowest_ns")), duration_ns);
  add_to(work.samples, std::max<std::int64_t>(1, several));
  add_to(work.busy_ns, duration_ns);
  work.slowest_ns = std::max(work.slowest_ns, several > 1 ? slowest_ns : duration_ns);
  add_to(work.bytes, signed_value(made.count("bytes")));
}

void EventMerger::write_span(std::int64_t process, const unidle_event& event, const char* kind, std::uint64_t samples) {
  writer_.add(
      record::Span{kind, process, signed_value(event.t_ns), signed_value(event.duration_ns), signed_value(samples)});
}

void EventMerger::write_point(std::int64_t process, const unidle_event& event, std::string_view name) {
  const std::int64_t series = writer_.series({std::string(name), "s", fmt::format("pid {}", process)});
  writer_.add_point(series, {signed_value(event.t_ns), static_cast<double>(event.duration_ns) * 1e-9});
}

void EventMerger::write_device(std::int64_t process, const unidle_event& event) {
  write_point(process, event, record::series::kStepDevice);
  unidle_event period = event;
  period.duration_ns = EventOf<UNIDLE_EVENT_DEVICE>(event).count("period_ns");
  if (period.duration_ns > 0) {
    write_point(process, period, record::series::kStepDevicePeriod);
  }
}

void EventMerger::write_kernels(const unidle_event& event) {
  const auto write = [&](std::string_view name, std::string_view unit, double value) {
    const std::int64_t series =
        writer_.series({std::string(name), std::string(unit), fmt::format("gpu{}", event.thread)});
    writer_.add_point(series, {signed_value(event.t_ns), value});
  };
  write("cupti.busy", "share", std::min(static_cast<double>(event.duration_ns) * 1e-9, 1.0));
  const EventOf<UNIDLE_EVENT_KERNELS> second(event);
  write("cupti.kernels", "1/s", static_cast<double>(second.count("kernels")));
  write("cupti.copied", "bytes/s", static_cast<double>(second.count("copied_bytes")));
  if (const double share = second.number("matrix_share"); share >= 0) {
    write("cupti.matrix_units", "share", share);
  }
}

void EventMerger::take_note(std::int64_t process, std::int64_t t_ns, nlohmann::json body) {
  t_ns = integer_of(body, "t_ns", t_ns);
  const std::string type = text_of(body, "type");
  if (type == "setting" && body.contains("knob") && body.contains("value")) {
    const std::string source = text_of(body, "source");
    writer_.add(record::Setting{text_of(body, "knob"), text_of(body, "value"), source.empty() ? "effective" : source,
                                text_of(body, "location")});
  } else if (type == "metric" && body.contains("name") && body.contains("value") && body["value"].is_number()) {
    writer_.add(record::Metric{text_of(body, "name"), t_ns, integer_of(body, "step", 0), integer_of(body, "samples", 0),
                               body["value"].get<double>()});
  }
  writer_.add(record::Note{t_ns, process, std::move(body)});
}

void EventMerger::write_seconds(std::int64_t now_ns) {
  const auto end = work_.lower_bound({now_ns - 2 * kNsPerSecond, INT64_MIN, INT64_MIN});
  for (auto entry = work_.begin(); entry != end; entry = work_.erase(entry)) {
    writer_.add(entry->second);
  }
}

void EventMerger::finish() {
  for (const auto& [key, work] : work_) {
    writer_.add(work);
  }
  work_.clear();
  parts_.clear();
}

}  // namespace unidle::observe
