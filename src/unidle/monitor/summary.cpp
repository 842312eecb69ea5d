#include "unidle/monitor/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "unidle/base/clock.h"
#include "unidle/base/layout.h"
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
    {"memory_bytes", "GPU memory", &telemetry::GpuReading::memory_bytes, false, "bytes"},
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

std::string row(const std::string& device, const std::string& label, const Figure& like, const Distribution& values) {
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
  add_cpu(snapshot);
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

void Summary::add_cpu(const Snapshot& snapshot) {
  const bool tree = snapshot.pid.has_value();
  if (tree_ && !tree) {
    return;  // the run has ended: what the machine uses is no part of its mean
  }
  if (tree && !tree_) {
    cpu_share_ = {};
    cpu_used_ = {};
  }
  tree_ = tree;
  cpus_ = tree ? snapshot.cpus_allowed : snapshot.cpus_online;
  add_if(cpu_share_, snapshot.cpu_share());
  add_if(cpu_used_, snapshot.cpu_used());
}

std::optional<double> Summary::energy_j(const Gpu& gpu) const {
  if (gpu.first_energy_j && *gpu.last_energy_j > *gpu.first_energy_j) {
    return *gpu.last_energy_j - *gpu.first_energy_j;
  }
  return gpu.figures.at("power_w").count() > 0 ? std::optional(gpu.integrated_j) : std::nullopt;
}

std::string Summary::to_text(int width, Language language) const {
  const Translator translator{language};
  if (samples_ == 0) {
    return "";
  }
  const std::string watched = format_seconds(seconds(last_ns_ - first_ns_));
  std::string text = samples_ == 1 ? translator.say("{} of watching, 1 sample", watched)
                                   : translator.say("{} of watching, {} samples", watched, samples_);
  text += "\n";
  text += fmt::format("{:<10} {:<16} {:>10} {:>10} {:>10} {:>10}\n", "", "", translator.word("mean"),
                      translator.word("median"), "95 %", translator.word("peak"));
  for (const std::string& subject : order_) {
    const Gpu& gpu = gpus_.at(subject);
    for (const Figure& figure : kFigures) {
      if (const Distribution& values = gpu.figures.at(figure.name); values.count() > 0) {
        text += row(subject, translator.word(figure.label), figure, values);
      }
    }
    if (const auto energy = energy_j(gpu)) {
      text +=
          fmt::format("{:<10} {:<16} {:>10}\n", subject, translator.word("energy"), fmt::format("{:.0f} J", *energy));
    }
    if (gpu.xids > 0) {
      text += fmt::format("{:<10} {:<16} {:>10}\n", subject, translator.say("Xid errors"), gpu.xids);
    }
  }
  constexpr Figure kShare = {"", "", nullptr, true, ""};
  if (cpu_share_.count() > 0) {
    text += row(translator.word("cpu"), tree_ ? translator.say("of those allowed") : translator.say("of the machine"),
                kShare, cpu_share_);
  }
  if (input_share_.count() > 0) {
    text += row(translator.word("run"), translator.say("input wait"), kShare, input_share_);
  }
  if (const auto rate = steps_per_s_.mean()) {
    text +=
        fmt::format("{:<10} {:<16} {:>10}\n", translator.word("run"), translator.word("steps/s"), format_number(*rate));
  }
  if (const auto rate = samples_per_s_.mean()) {
    text += fmt::format("{:<10} {:<16} {:>10}\n", translator.word("run"), translator.word("samples/s"),
                        format_number(*rate));
  }
  return text + block(verdict(language), width, 0, translator.word("Verdict: "));
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

std::string Summary::advice(const Translator& translator) const {
  if (const auto input = input_share_.mean(); input && *input > kInputWait) {
    return translator.say("; its steps wait for input {} of their time: unidle diagnose says why",
                          format_share(*input));
  }
  return steps_per_s_.count() > 0 ? translator.say("; unidle diagnose says why")
                                  : translator.say("; unidle run -- CMD and unidle diagnose say why");
}

std::string Summary::gpu_verdict(const Translator& translator) const {
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
  const std::string heat = throttled ? translator.say("; its clocks were held down by temperature or power") : "";
  const std::string who = order_.size() == 1 ? translator.say("the GPU") : translator.say("the GPUs");
  if (measured == 0 && !sms.mean()) {
    return mig ? translator.say("NVML tells of no MIG slice how busy it is, and GPM did not tell either")
           : order_.size() == 1 ? translator.say("the GPU did not say how busy it was")
                                : translator.say("the GPUs did not say how busy they were");
  }
  const bool by_sms = measured == 0;
  const double busy = by_sms ? *sms.mean() : utilisation / measured;
  const std::string what = by_sms ? translator.say("{} of its SMs worked", format_share(busy))
                                  : translator.say("kernels ran {} of the time", format_share(busy));
  if (busy < kIdle) {
    return translator.say("{} idled: {}{}{}", who, what, advice(translator), heat);
  }
  if (busy < kBusy) {
    return translator.say("{} idled part of the time: {}{}{}", who, what, advice(translator), heat);
  }
  if (!by_sms && sms.mean() && *sms.mean() < kFewSms) {
    return translator.say("{} looked busy, {}, on {} of the SMs only: kernels or batches are small{}", who, what,
                          format_share(*sms.mean()), heat);
  }
  return translator.say("{} worked: {}{}", who, what, heat);
}

std::string Summary::cpu_verdict(const Translator& translator) const {
  const auto share = cpu_share_.mean();
  if (!share) {
    return translator.say("too short to say anything");
  }
  const std::string what =
      tree_ ? translator.say("the run used {} of {} CPUs, {} of what it may use", format_number(*cpu_used_.mean()),
                             format_number(cpus_), format_share(*share))
            : translator.say("{} of {} CPUs were in use, {}", format_number(*cpu_used_.mean()), format_number(cpus_),
                             format_share(*share));
  const std::string state = *share < kIdle   ? translator.word("idled")
                            : *share < kBusy ? translator.say("idled part of the time")
                                             : translator.word("worked");
  const std::string why = *share < kBusy && tree_ ? advice(translator) : "";
  return translator.say("the CPU, which is the device here, {}: {}{}", state, what, why);
}

std::string Summary::verdict(Language language) const {
  const Translator translator{language};
  if (!gpus_known_) {
    return translator.say("there is a GPU driver that does not answer: unidle check says why");
  }
  return gpus_.empty() ? cpu_verdict(translator) : gpu_verdict(translator);
}

}  // namespace unidle::monitor
