#include "unidle/train/events.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/train/summary.h"

namespace unidle::train {

namespace {

/// CLOCK_MONOTONIC time of this process's start, from field 22 of /proc/self/stat in clock ticks. Now when unknown.
std::uint64_t process_start_ns() {
  const std::uint64_t now = unidle_probe_now_ns();
  const auto stat = try_read_file("/proc/self/stat");
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) {
    return now;
  }
  std::istringstream words(stat->substr(name_end + 1));
  std::string word;
  for (int field = 3; field <= 22; ++field) {
    words >> word;
  }
  const std::uint64_t ticks = std::strtoull(word.c_str(), nullptr, 10);
  const auto per_second = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  const std::uint64_t start = ticks * static_cast<std::uint64_t>(kNsPerSecond) / per_second;
  return start < now ? start : now;
}

/// File names may not be UTF-8; notes must be.
void send(unidle_probe* probe, const nlohmann::json& note) { unidle_probe_note(probe, json_text(note, -1).c_str()); }

}  // namespace

Events::Events() : probe_(unidle_probe_open("train")) {}
Events::~Events() { unidle_probe_close(probe_); }

void Events::emit(unidle_event_kind kind, std::uint64_t t_ns, std::uint64_t duration_ns, std::uint64_t step,
                  std::uint64_t a, double value) {
  if (probe_ == nullptr) {
    return;
  }
  unidle_event event{};
  event.kind = static_cast<std::uint32_t>(kind);
  event.t_ns = t_ns;
  event.duration_ns = duration_ns;
  event.step = step;
  event.a = a;
  event.value = value;
  unidle_probe_emit(probe_, &event);
}

void Events::begin_step(std::uint64_t step) {
  step_ = {};
  step_.t_ns = now_ns();
  step_.step = step;
  in_step_ = true;
}

void Events::part(unidle_step_field part, std::uint64_t start_ns) {
  if (probe_ == nullptr || !in_step_) {
    return;
  }
  const std::uint64_t took_ns = now_ns() - start_ns;
  step_.seen |= part;
  switch (part) {
    case UNIDLE_STEP_INPUT: step_.input_ns += took_ns; break;
    case UNIDLE_STEP_TRANSFER: step_.transfer_ns += took_ns; break;
    case UNIDLE_STEP_FORWARD: step_.forward_ns += took_ns; break;
    case UNIDLE_STEP_BACKWARD: step_.backward_ns += took_ns; break;
    case UNIDLE_STEP_OPTIMIZER: step_.optimizer_ns += took_ns; break;
    case UNIDLE_STEP_SYNC:
      step_.sync_ns += took_ns;
      ++step_.syncs;
      break;
    case UNIDLE_STEP_LOSS: break;
  }
}

void Events::flush(std::uint64_t start_ns) { step_.flush_ns += now_ns() - start_ns; }

void Events::end_step(std::int64_t samples, std::int64_t micro_batches) {
  step_.duration_ns = now_ns() - step_.t_ns;
  step_.samples = static_cast<std::uint64_t>(samples);
  step_.micro_batches = static_cast<std::uint32_t>(micro_batches);
  unidle_probe_step(probe_, &step_);
  in_step_ = false;
}

void Events::span(unidle_event_kind kind, std::uint64_t start_ns, std::uint64_t step, std::int64_t samples) {
  emit(kind, start_ns, now_ns() - start_ns, step, static_cast<std::uint64_t>(samples));
}

void Events::device_time(std::uint64_t step, std::uint64_t t_ns, std::uint64_t work_ns, std::uint64_t period_ns) {
  emit(UNIDLE_EVENT_DEVICE, t_ns, work_ns, step, period_ns);
}

void Events::loss(std::uint64_t step, std::uint64_t samples_before, double value) {
  if (tensorboard_) {
    tensorboard_->loss(step + 1, value);
  }
  if (in_step_ && step == step_.step) {
    step_.seen |= UNIDLE_STEP_LOSS;
    step_.loss = value;
    step_.samples_before = samples_before;
  } else {
    emit(UNIDLE_EVENT_LOSS, now_ns(), 0, step, samples_before, value);
  }
}

void Events::begin(std::uint64_t steps, std::uint64_t samples) {
  if (tensorboard_) {
    tensorboard_->begin(steps, samples);
  }
}

void Events::pace(const Pace& now) {
  if (tensorboard_) {
    tensorboard_->pace(now);
  }
}

void Events::samples(const data::Batch& batch, std::uint64_t step) {
  if (probe_ == nullptr) {
    return;
  }
  for (const data::ItemTiming& timing : batch.timings()) {
    unidle_event event{};
    event.kind = UNIDLE_EVENT_SAMPLE;
    event.t_ns = static_cast<std::uint64_t>(timing.start_ns);
    event.duration_ns = static_cast<std::uint64_t>(timing.duration_ns);
    event.step = step;
    event.a = static_cast<std::uint64_t>(timing.item);
    event.b = timing.bytes;
    event.thread = static_cast<std::uint32_t>(timing.thread);
    if (timing.items > 1) {
      event.value = static_cast<double>(timing.items);
      event.reserved = static_cast<std::uint64_t>(timing.duration_ns / timing.items);
    }
    unidle_probe_emit(probe_, &event);
  }
}

void Events::startup() { span(UNIDLE_EVENT_STARTUP, process_start_ns(), 0); }

void Events::settings(const Config& config, const Effective& effective) {
  if (probe_ == nullptr) {
    return;
  }
  for (const Setting& setting : all_settings()) {
    const std::string name(setting.name);
    nlohmann::json note = {{"type", "setting"},
                           {"knob", name},
                           {"value", typed_value(setting, config.written(name))},
                           {"source", "configured"},
                           {"location", config.location(name)}};
    if (!config.location(name).empty()) {
      send(probe_, note);
    }
    if (const auto found = effective.find(name); found != effective.end()) {
      note["value"] = typed_value(setting, found->second);
      note["source"] = "effective";
      note["location"] = "";
      send(probe_, note);
    }
  }
}

void Events::unread(const Config& config, const std::vector<const Setting*>& settings) {
  if (probe_ == nullptr || settings.empty()) {
    return;
  }
  nlohmann::json note = {{"type", "unread"}, {"keys", nlohmann::json::array()}};
  for (const Setting* setting : settings) {
    note["keys"].push_back({{"key", setting->name}, {"at", config.location(std::string(setting->name))}});
  }
  send(probe_, note);
}

void Events::calls(std::string_view call, const std::string& where, std::int64_t count, std::uint64_t ns) {
  if (probe_ != nullptr) {
    const nlohmann::json note = {{"type", "sync"},   {"call", call},
                                 {"where", where},   {"count", count},
                                 {"in_step", count}, {"seconds", seconds(static_cast<std::int64_t>(ns))}};
    send(probe_, note);
  }
}

void Events::device(int index, const DeviceFacts& facts, std::int64_t looked_at, std::int64_t kept_up) {
  if (probe_ != nullptr) {
    const nlohmann::json note = {{"type", "device"},
                                 {"kind", "cuda"},
                                 {"index", index},
                                 {"name", facts.name},
                                 {"uuid", facts.uuid},
                                 {"pci", facts.pci},
                                 {"capability", std::to_string(facts.major) + "." + std::to_string(facts.minor)},
                                 {"memory_bytes", facts.memory_bytes},
                                 {"looked_at", looked_at},
                                 {"kept_up", kept_up}};
    send(probe_, note);
  }
}

void Events::metric(std::string_view name, double value, std::uint64_t step, std::uint64_t samples) {
  if (tensorboard_) {
    tensorboard_->metric(name, step, value);
  }
  if (probe_ != nullptr) {
    const nlohmann::json note = {
        {"type", "metric"}, {"name", name}, {"value", value}, {"step", step}, {"samples", samples}};
    send(probe_, note);
  }
}

void Events::model(const ModelFacts& facts) {
  if (probe_ != nullptr) {
    const nlohmann::json note = {{"type", "model"},
                                 {"parameters", facts.parameters},
                                 {"convolutions", facts.convolutions},
                                 {"depthwise", facts.depthwise}};
    send(probe_, note);
  }
}

void Events::trace(nlohmann::json note) {
  if (probe_ != nullptr) {
    note["type"] = "trace";
    send(probe_, note);
  }
}

void Events::stages(const data::LoaderWork& work) {
  if (probe_ != nullptr) {
    nlohmann::json note = {{"type", "samples"}, {"stages", nlohmann::json::array()}};
    for (const std::int64_t ns : work.stage_ns) {
      note["stages"].push_back(seconds(ns));
    }
    send(probe_, note);
  }
}

void Events::data(std::int64_t samples_per_epoch) {
  if (probe_ != nullptr) {
    const nlohmann::json note = {{"type", "data"}, {"samples_per_epoch", samples_per_epoch}};
    send(probe_, note);
  }
}

}  // namespace unidle::train
