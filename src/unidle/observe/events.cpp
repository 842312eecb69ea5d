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

std::int64_t signed_value(std::uint64_t value) { return static_cast<std::int64_t>(value); }

/// A count stored as a floating-point number; 0 if it is not a valid count.
std::int64_t whole(double value) { return value >= 1 && value < 1e15 ? static_cast<std::int64_t>(value) : 0; }

/// Saturating addition: a ring may contain any value.
void add_to(std::int64_t& sum, std::int64_t value) { sum = __builtin_add_overflow(sum, value, &sum) ? INT64_MAX : sum; }

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

void EventWriter::take(std::int64_t process, const probe::Slot& slot) {
  const unidle_event& event = slot.event;
  switch (event.kind) {
    case UNIDLE_EVENT_STEP: take_step(process, slot.step); break;
    case UNIDLE_EVENT_SAMPLE: add_work(process, event); break;
    case UNIDLE_EVENT_STARTUP: write_span(process, event, "startup", 0); break;
    case UNIDLE_EVENT_VALIDATE:
      write_span(process, event, "validate", EventOf<UNIDLE_EVENT_VALIDATE>(event).count("samples"));
      break;
    case UNIDLE_EVENT_CHECKPOINT: write_span(process, event, "checkpoint", 0); break;
    case UNIDLE_EVENT_LOSS: write_loss(event); break;
    case UNIDLE_EVENT_DEVICE: write_device(process, event); break;
    case UNIDLE_EVENT_KERNELS: write_kernels(event); break;
    default: break;
  }
}

void EventWriter::take_step(std::int64_t process, const unidle_step& step) {
  const std::int64_t index = signed_value(step.step);
  const auto first = first_.find(process);
  if (first != first_.end() && index < first->second) {
    return;
  }
  const auto seen = [&](unidle_step_field field, std::uint64_t value) {
    return (step.seen & field) != 0 ? std::optional(signed_value(value)) : std::nullopt;
  };
  record::Step row;
  row.process = process;
  row.index = index;
  row.t_ns = signed_value(step.t_ns);
  row.duration_ns = signed_value(step.duration_ns);
  row.samples = signed_value(step.samples);
  row.micro_batches = std::max<std::int64_t>(step.micro_batches, 1);
  row.input_ns = seen(UNIDLE_STEP_INPUT, step.input_ns);
  row.transfer_ns = seen(UNIDLE_STEP_TRANSFER, step.transfer_ns);
  row.forward_ns = seen(UNIDLE_STEP_FORWARD, step.forward_ns);
  row.backward_ns = seen(UNIDLE_STEP_BACKWARD, step.backward_ns);
  row.optimizer_ns = seen(UNIDLE_STEP_OPTIMIZER, step.optimizer_ns);
  row.sync_ns = seen(UNIDLE_STEP_SYNC, step.sync_ns);
  row.syncs = seen(UNIDLE_STEP_SYNC, step.syncs);
  if (const auto before = seen(UNIDLE_STEP_LOSS, step.samples_before)) {
    row.loss = step.loss;
    row.samples_before = before;
  }
  writer_.add(row);
  if (step.log_ns > 0) {
    write_point(process, step.t_ns, step.log_ns, record::series::kStepLog);
  }
  if (step.flush_ns > 0) {
    write_point(process, step.t_ns, step.flush_ns, record::series::kStepFlush);
  }
  last_steps_[process] = index;
  steps_ += 1;
}

std::int64_t EventWriter::steps_of(std::int64_t process) const {
  const auto last = last_steps_.find(process);
  return last == last_steps_.end() ? 0 : last->second + 1;
}

void EventWriter::forget(std::int64_t process) {
  last_steps_.erase(process);
  first_.erase(process);
}

void EventWriter::write_loss(const unidle_event& event) {
  const EventOf<UNIDLE_EVENT_LOSS> loss(event);
  writer_.add(record::Metric{"loss", signed_value(event.t_ns), signed_value(event.step),
                             signed_value(loss.count("samples_before")), loss.number("loss")});
}

void EventWriter::add_work(std::int64_t process, const unidle_event& event) {
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

void EventWriter::write_span(std::int64_t process, const unidle_event& event, const char* kind, std::uint64_t samples) {
  writer_.add(
      record::Span{kind, process, signed_value(event.t_ns), signed_value(event.duration_ns), signed_value(samples)});
}

void EventWriter::write_point(std::int64_t process, std::uint64_t t_ns, std::uint64_t ns, std::string_view name) {
  const std::int64_t series = writer_.series({std::string(name), "s", fmt::format("pid {}", process)});
  writer_.add_point(series, {signed_value(t_ns), static_cast<double>(ns) * 1e-9});
}

void EventWriter::write_device(std::int64_t process, const unidle_event& event) {
  write_point(process, event.t_ns, event.duration_ns, record::series::kStepDevice);
  if (const std::uint64_t period_ns = EventOf<UNIDLE_EVENT_DEVICE>(event).count("period_ns"); period_ns > 0) {
    write_point(process, event.t_ns, period_ns, record::series::kStepDevicePeriod);
  }
}

void EventWriter::write_kernels(const unidle_event& event) {
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

void EventWriter::take_note(std::int64_t process, std::int64_t t_ns, nlohmann::json body) {
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

void EventWriter::write_work() {
  for (const auto& [key, work] : work_) {
    writer_.add(work);
  }
  work_.clear();
}

}  // namespace unidle::observe
