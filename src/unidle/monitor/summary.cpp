#include "unidle/monitor/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "unidle/base/clock.h"
#include "unidle/base/terminal.h"
#include "unidle/base/units.h"

namespace unidle::monitor {

using nlohmann::json;

namespace {

/// Below this a device is idle; above kBusy it is busy. Optimisation guides set targets of 75 to 85 %.
constexpr double kIdle = 0.1;
constexpr double kBusy = 0.75;
/// A device that is always busy but uses less than half of its SMs waits for launches, or its batches are small.
constexpr double kFewSms = 0.5;
/// Above this share of waiting for input, a faster loader pays off.
constexpr double kInputWait = 0.2;

struct Figure {
  const char* name;
  const char* label;
  std::optional<double> telemetry::GpuReading::*value;
  bool share;
  const char* unit;
};

constexpr Figure kFigures[] = {
    {"utilisation", "utilisation", &telemetry::GpuReading::utilisation, true, ""},
    {"sm_activity", "SM activity", &telemetry::GpuReading::sm_activity, true, ""},
    {"tensor_activity", "tensor activity", &telemetry::GpuReading::tensor_activity, true, ""},
    {"dram_activity", "memory activity", &telemetry::GpuReading::dram_activity, true, ""},
    {"power_w", "power", &telemetry::GpuReading::power_w, false, "W"},
    {"memory_bytes", "memory", &telemetry::GpuReading::memory_bytes, false, "bytes"},
    {"temperature_c", "temperature", &telemetry::GpuReading::temperature_c, false, "C"},
    {"sm_clock_mhz", "SM clock", &telemetry::GpuReading::sm_clock_mhz, false, "MHz"},
};

std::string value_text(const Figure& figure, const std::optional<double>& value) {
  if (!value) {
    return "-";
  }
  if (figure.share) {
    return format_share(*value);
  }
  if (figure.unit == std::string_view("bytes")) {
    return format_bytes(static_cast<std::uint64_t>(*value));
  }
  return fmt::format("{:.0f} {}", *value, figure.unit);
}

std::string row(const std::string& device, const char* label, const Figure& like, const Distribution& values) {
  return fmt::format("{:<10} {:<16} {:>10} {:>10} {:>10} {:>10}\n", device, label, value_text(like, values.mean()),
                     value_text(like, values.quantile(0.5)), value_text(like, values.quantile(0.95)),
                     value_text(like, values.peak()));
}

json figure_json(const Distribution& values) {
  if (values.count() == 0) {
    return nullptr;
  }
  return {{"mean", *values.mean()},
          {"p5", *values.quantile(0.05)},
          {"p50", *values.quantile(0.5)},
          {"p95", *values.quantile(0.95)},
          {"peak", *values.peak()}};
}

void add_if(Distribution& values, const std::optional<double>& value) {
  if (value) {
    values.add(*value);
  }
}

}  // namespace

void Summary::add(const Snapshot& snapshot) {
  const double passed_s = samples_ > 0 ? seconds(snapshot.t_ns - last_ns_) : 0;
  first_ns_ = samples_ == 0 ? snapshot.t_ns : first_ns_;
  last_ns_ = snapshot.t_ns;
  ++samples_;
  gpus_known_ = snapshot.gpus_known;
  tree_ = tree_ || snapshot.pid.has_value();
  cpus_ = snapshot.pid ? snapshot.cpus_allowed : snapshot.cpus_online;
  add_if(cpu_share_, snapshot.cpu_share());
  add_if(cpu_used_, snapshot.cpu_used());
  if (snapshot.run) {
    add_if(steps_per_s_, snapshot.run->steps_per_s);
    add_if(samples_per_s_, snapshot.run->samples_per_s);
    add_if(input_share_, snapshot.run->input_share);
  }
  for (const GpuNow& now : snapshot.gpus) {
    if (!gpus_.contains(now.subject)) {
      order_.push_back(now.subject);
    }
    Gpu& gpu = gpus_[now.subject];
    gpu.name = now.name;
    gpu.xids = now.xids;
    gpu.mig = now.mig;
    for (const Figure& figure : kFigures) {
      add_if(gpu.figures[figure.name], now.reading.*figure.value);
    }
    if (now.reading.energy_j) {
      gpu.first_energy_j = gpu.first_energy_j ? gpu.first_energy_j : now.reading.energy_j;
      gpu.last_energy_j = now.reading.energy_j;
    }
    gpu.integrated_j += now.reading.power_w.value_or(0) * passed_s;
    const auto reasons = static_cast<std::uint64_t>(now.reading.throttle_reasons.value_or(0));
    constexpr std::uint64_t kHeat = telemetry::nvml::kReasonHardwareSlowdown | telemetry::nvml::kReasonHardwareThermal |
                                    telemetry::nvml::kReasonSoftwareThermal | telemetry::nvml::kReasonPowerBrake;
    gpu.throttled = gpu.throttled || (reasons & kHeat) != 0;
  }
}

std::optional<double> Summary::energy_j(const Gpu& gpu) const {
  if (gpu.first_energy_j && *gpu.last_energy_j > *gpu.first_energy_j) {
    return *gpu.last_energy_j - *gpu.first_energy_j;
  }
  return gpu.figures.at("power_w").count() > 0 ? std::optional(gpu.integrated_j) : std::nullopt;
}

std::string Summary::to_text(int width) const {
  if (samples_ == 0) {
    return "";
  }
  std::string text = fmt::format("{} of watching, {}\n", format_seconds(seconds(last_ns_ - first_ns_)),
                                 format_count(samples_, "sample"));
  text += fmt::format("{:<10} {:<16} {:>10} {:>10} {:>10} {:>10}\n", "", "", "mean", "median", "95 %", "peak");
  for (const std::string& subject : order_) {
    const Gpu& gpu = gpus_.at(subject);
    for (const Figure& figure : kFigures) {
      if (const Distribution& values = gpu.figures.at(figure.name); values.count() > 0) {
        text += row(subject, figure.label, figure, values);
      }
    }
    if (const auto energy = energy_j(gpu)) {
      text += fmt::format("{:<10} {:<16} {:>10}\n", subject, "energy", fmt::format("{:.0f} J", *energy));
    }
    if (gpu.xids > 0) {
      text += fmt::format("{:<10} {:<16} {:>10}\n", subject, "Xid errors", gpu.xids);
    }
  }
  constexpr Figure kShare = {"", "", nullptr, true, ""};
  if (cpu_share_.count() > 0) {
    text += row("cpu", tree_ ? "of those allowed" : "of the machine", kShare, cpu_share_);
  }
  if (input_share_.count() > 0) {
    text += row("run", "input wait", kShare, input_share_);
  }
  if (const auto rate = steps_per_s_.mean()) {
    text += fmt::format("{:<10} {:<16} {:>10}\n", "run", "steps/s", format_number(*rate));
  }
  if (const auto rate = samples_per_s_.mean()) {
    text += fmt::format("{:<10} {:<16} {:>10}\n", "run", "samples/s", format_number(*rate));
  }
  return text + wrap("Verdict: " + verdict(), width, 9) + "\n";
}

json Summary::to_json() const {
  json gpus = json::array();
  for (const std::string& subject : order_) {
    const Gpu& gpu = gpus_.at(subject);
    json entry = {{"gpu", subject}, {"name", gpu.name}, {"xid_errors", gpu.xids}, {"energy_j", nullptr}};
    for (const Figure& figure : kFigures) {
      entry[figure.name] = figure_json(gpu.figures.at(figure.name));
    }
    if (const auto energy = energy_j(gpu)) {
      entry["energy_j"] = *energy;
    }
    gpus.push_back(std::move(entry));
  }
  return {{"type", "summary"},
          {"seconds", seconds(last_ns_ - first_ns_)},
          {"samples", samples_},
          {"cpu", {{"used", figure_json(cpu_used_)}, {"share", figure_json(cpu_share_)}, {"cpus", cpus_}}},
          {"gpus", gpus_known_ ? gpus : json(nullptr)},
          {"run",
           {{"steps_per_s", figure_json(steps_per_s_)},
            {"samples_per_s", figure_json(samples_per_s_)},
            {"input_share", figure_json(input_share_)}}},
          {"verdict", verdict()}};
}

std::string Summary::advice() const {
  if (const auto input = input_share_.mean(); input && *input > kInputWait) {
    return fmt::format("; its steps wait for input {} of their time: unidle diagnose says why", format_share(*input));
  }
  return steps_per_s_.count() > 0 ? "; unidle diagnose says why" : "; unidle run -- CMD and unidle diagnose say why";
}

std::string Summary::gpu_verdict() const {
  double utilisation = 0;
  int measured = 0;
  Distribution sms;
  bool throttled = false;
  bool mig = false;
  for (const auto& [subject, gpu] : gpus_) {
    if (const auto mean = gpu.figures.at("utilisation").mean()) {
      utilisation += *mean;
      ++measured;
    }
    add_if(sms, gpu.figures.at("sm_activity").mean());
    throttled = throttled || gpu.throttled;
    mig = mig || gpu.mig;
  }
  const std::string heat = throttled ? "; its clocks were held down by temperature or power" : "";
  const std::string who = order_.size() == 1 ? "the GPU" : "the GPUs";
  if (measured == 0 && !sms.mean()) {
    return mig ? "NVML tells of no MIG slice how busy it is, and GPM did not tell either"
               : who + (order_.size() == 1 ? " did not say how busy it was" : " did not say how busy they were");
  }
  const bool by_sms = measured == 0;
  const double busy = by_sms ? *sms.mean() : utilisation / measured;
  const std::string what = by_sms ? fmt::format("{} of its SMs worked", format_share(busy))
                                  : fmt::format("kernels ran {} of the time", format_share(busy));
  if (busy < kIdle) {
    return fmt::format("{} idled: {}{}{}", who, what, advice(), heat);
  }
  if (busy < kBusy) {
    return fmt::format("{} idled part of the time: {}{}{}", who, what, advice(), heat);
  }
  if (!by_sms && sms.mean() && *sms.mean() < kFewSms) {
    return fmt::format("{} looked busy, {}, on {} of the SMs only: kernels or batches are small{}", who, what,
                       format_share(*sms.mean()), heat);
  }
  return fmt::format("{} worked: {}{}", who, what, heat);
}

std::string Summary::cpu_verdict() const {
  const auto share = cpu_share_.mean();
  if (!share) {
    return "too short to say anything";
  }
  const std::string what =
      tree_ ? fmt::format("the run used {} of {} CPUs, {} of what it may use", format_number(*cpu_used_.mean()),
                          format_number(cpus_), format_share(*share))
            : fmt::format("{} of {} CPUs were in use, {}", format_number(*cpu_used_.mean()), format_number(cpus_),
                          format_share(*share));
  const std::string state = *share < kIdle ? "idled" : *share < kBusy ? "idled part of the time" : "worked";
  const std::string why = *share < kBusy && tree_ ? advice() : "";
  return fmt::format("the CPU, which is the device here, {}: {}{}", state, what, why);
}

std::string Summary::verdict() const {
  if (!gpus_known_) {
    return "there is a GPU driver that does not answer: unidle check says why";
  }
  return gpus_.empty() ? cpu_verdict() : gpu_verdict();
}

}  // namespace unidle::monitor
