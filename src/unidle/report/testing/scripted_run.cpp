#include "unidle/report/testing/scripted_run.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace unidle::report::testing {

using account::RunData;

namespace {

constexpr std::int64_t kProcess = 4242;
constexpr std::int64_t kStartNs = 1'000'000'000'000;
constexpr double kSampleEveryS = 0.25;
constexpr double kFullMemory = 80.0 * 1024 * 1024 * 1024;

std::int64_t ns(double milliseconds) { return static_cast<std::int64_t>(std::max(0.0, milliseconds) * 1e6); }

class TimelineWriter {
 public:
  explicit TimelineWriter(const Script& script) : script_(script), random_(script.seed) {}

  RunData play() {
    run_.name = script_.name;
    add_meta();
    span("startup", script_.startup_s, 0);
    for (int i = 0; i < script_.steps; ++i) {
      step(i);
      if (script_.validate_every > 0 && (i + 1) % script_.validate_every == 0) {
        validate(i + 1);
      }
      if (script_.checkpoint_every > 0 && (i + 1) % script_.checkpoint_every == 0) {
        span("checkpoint", script_.checkpoint_s * noisy(), 0);
      }
    }
    now_ += ns(300);
    run_.meta["end_ns"] = now_;
    add_series();
    run_.settings = script_.settings;
    account::tidy(run_);
    return run_;
  }

 private:
  double noisy() { return std::max(0.2, 1 + script_.noise * unit_(random_)); }

  void add_meta() {
    run_.meta["command"] = {"python", "train.py", "--config", script_.name + ".yaml"};
    run_.meta["started_utc"] = "2026-01-15T09:30:00Z";
    run_.meta["start_ns"] = kStartNs;
    run_.meta["outcome"] = "completed";
    run_.meta["exit"] = {{"code", 0}, {"signal", 0}};
    run_.meta["tier"] = "host+probe";
    run_.meta["host"] = {{"hostname", "node-07"},
                         {"cpu_model", "AMD EPYC 9354 32-Core Processor"},
                         {"cpus_allowed", script_.cpus},
                         {"memory_bytes", 137438953472}};
    if (script_.gpu) {
      run_.meta["gpus"] = nlohmann::json::array(
          {{{"name", "NVIDIA H100 80GB HBM3"}, {"memory_bytes", kFullMemory}, {"capability", "9.0"}}});
    }
  }

  void span(const char* kind, double seconds, std::int64_t samples) {
    run_.spans.push_back({kind, kProcess, now_, ns(seconds * 1e3), samples});
    now_ += ns(seconds * 1e3);
  }

  void step(int index) {
    record::Step step;
    step.process = kProcess;
    step.index = index;
    step.t_ns = now_;
    step.samples = script_.batch;
    step.samples_before = seen_;
    // The first steps are slower, as in real runs.
    const double slow = index < 3 ? 2.5 : 1;
    step.input_ns = ns(script_.input_ms * noisy() * (unit_(random_) > 2 ? 2.5 : 1));
    if (script_.transfer_ms > 0) {
      step.transfer_ns = ns(script_.transfer_ms * noisy());
    }
    const double compute = script_.compute_ms * noisy() * slow;
    step.forward_ns = ns(compute * 0.4);
    step.backward_ns = ns(compute * 0.6);
    step.sync_ns = ns(script_.sync_ms * noisy());
    step.syncs = 1;
    step.optimizer_ns = ns(script_.optimizer_ms * noisy());
    step.duration_ns = *step.input_ns + step.transfer_ns.value_or(0) + *step.forward_ns + *step.backward_ns +
                       *step.sync_ns + *step.optimizer_ns + ns(script_.other_ms * noisy());
    const double curve = 0.03 + 0.22 * std::exp(-static_cast<double>(seen_) / 300);
    step.loss = script_.loss_factor * curve * (1 + 0.08 * unit_(random_));
    run_.steps.push_back(step);
    seen_ += script_.batch;
    now_ += step.duration_ns;
  }

  void validate(int index) {
    span("validate", script_.validate_s * noisy(), 64);
    const double psnr = 27.5 - 6 * std::exp(-static_cast<double>(seen_) / 300) + script_.psnr_offset;
    run_.metrics["psnr"].push_back({"psnr", now_, index, seen_, psnr + 0.005 * unit_(random_)});
  }

  bool training_at(std::int64_t t_ns) const {
    return std::none_of(run_.spans.begin(), run_.spans.end(),
                        [&](const auto& span) { return t_ns >= span.t_ns && t_ns < span.t_ns + span.duration_ns; });
  }

  void add_series() {
    std::vector<record::Point> cpu, memory, util, gpu_memory, power;
    const double cycle = script_.input_ms + script_.transfer_ms + script_.compute_ms + script_.sync_ms +
                         script_.optimizer_ms + script_.other_ms;
    const double busy = (script_.compute_ms + script_.optimizer_ms) / cycle;
    for (std::int64_t t = kStartNs; t < now_; t += ns(kSampleEveryS * 1e3)) {
      const bool training = training_at(t);
      const bool started = static_cast<double>(t - kStartNs) / 1e9 > script_.startup_s;
      cpu.push_back({t, std::clamp((training ? script_.cores : 1.0) * noisy(), 0.0, script_.cpus)});
      memory.push_back({t, (started ? 6.5e9 : 1.5e9) * (1 + 0.01 * unit_(random_))});
      const double now_busy = std::clamp((training ? busy : started ? 0.5 : 0.0) * noisy(), 0.0, 1.0);
      util.push_back({t, now_busy});
      gpu_memory.push_back({t, started ? 21.4e9 + 2e8 * unit_(random_) : 0.6e9});
      power.push_back({t, 92 + 480 * now_busy * noisy()});
    }
    if (script_.others_cores) {
      std::vector<record::Point> host = cpu;
      for (record::Point& point : host) {
        point.value += *script_.others_cores;
      }
      run_.series.push_back({{"host.cpu", "cores", ""}, host});
    }
    run_.series.push_back({{"tree.cpu", "cores", ""}, cpu});
    run_.series.push_back({{"tree.memory", "bytes", ""}, memory});
    if (script_.gpu) {
      run_.series.push_back({{"gpu.utilisation", "1", "gpu0"}, util});
      run_.series.push_back({{"gpu.memory", "bytes", "gpu0"}, gpu_memory});
      run_.series.push_back({{"gpu.power", "W", "gpu0"}, power});
    }
  }

  const Script& script_;
  std::mt19937_64 random_;
  std::normal_distribution<double> unit_{0, 1};
  RunData run_;
  std::int64_t now_ = kStartNs;
  std::int64_t seen_ = 0;
};

}  // namespace

RunData scripted_run(const Script& script) { return TimelineWriter(script).play(); }

Script naive_script() {
  Script script;
  script.name = "superres-naive";
  script.steps = 240;
  script.input_ms = 92;
  script.compute_ms = 41;
  script.sync_ms = 6;
  script.optimizer_ms = 7;
  script.other_ms = 4;
  script.validate_every = 60;
  script.validate_s = 2.6;
  script.checkpoint_every = 120;
  script.cores = 1.1;
  script.settings = {
      {"loader.workers", "0", "configured", "naive.yaml:14"},   {"loader.workers", "0", "effective", ""},
      {"precision.amp", "true", "configured", "naive.yaml:22"}, {"precision.amp", "off", "effective", ""},
      {"batch.size", "4", "configured", "naive.yaml:9"},        {"batch.size", "4", "effective", ""},
      {"layout.channels_last", "false", "effective", ""},       {"optimizer.fused", "false", "effective", ""}};
  return script;
}

Script tuned_script() {
  Script script = naive_script();
  script.name = "superres-tuned";
  script.input_ms = 1.4;
  script.compute_ms = 30;
  script.sync_ms = 0.3;
  script.optimizer_ms = 3;
  script.other_ms = 2;
  script.cores = 6.9;
  script.validate_s = 1.3;
  script.seed = 7;
  script.settings = {
      {"loader.workers", "4", "configured", "tuned.yaml:14"},   {"loader.workers", "4", "effective", ""},
      {"precision.amp", "bf16", "configured", "tuned.yaml:22"}, {"precision.amp", "bf16", "effective", ""},
      {"batch.size", "4", "configured", "tuned.yaml:9"},        {"batch.size", "4", "effective", ""},
      {"layout.channels_last", "true", "effective", ""},        {"optimizer.fused", "true", "effective", ""}};
  return script;
}

Script gpu_script() {
  Script script = naive_script();
  script.name = "keypoint-h100";
  script.gpu = true;
  script.batch = 64;
  script.steps = 400;
  script.input_ms = 38;
  script.transfer_ms = 9;
  script.compute_ms = 24;
  script.sync_ms = 11;
  script.optimizer_ms = 6;
  script.cores = 5.2;
  script.validate_every = 100;
  script.validate_s = 1.8;
  script.seed = 11;
  return script;
}

void write_record(const RunData& run, const std::filesystem::path& folder) {
  record::Writer writer(folder);
  for (const auto& [key, value] : run.meta.items()) {
    writer.set_meta(key, value);
  }
  for (const auto& step : run.steps) {
    writer.add(step);
  }
  for (const auto& span : run.spans) {
    writer.add(span);
  }
  for (const auto& note : run.notes) {
    writer.add(note);
  }
  for (const auto& setting : run.settings) {
    writer.add(setting);
  }
  for (const auto& [name, values] : run.metrics) {
    for (const auto& metric : values) {
      writer.add(metric);
    }
  }
  for (const auto& [series, points] : run.series) {
    const std::int64_t id = writer.series(series);
    for (const auto& point : points) {
      writer.add_point(id, point);
    }
  }
  writer.flush();
}

}  // namespace unidle::report::testing
