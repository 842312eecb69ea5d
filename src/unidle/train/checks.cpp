#include "unidle/train/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "unidle/base/json.h"
#include "unidle/telemetry/host.h"
#include "unidle/traits/workload.h"

namespace unidle::train {

namespace {

std::string subject_of(const Config& config, std::string_view key) {
  const std::string& location = config.location(key);
  return fmt::format("{}: {}", location.empty() ? config.name() : location, key);
}

[[noreturn]] void refuse_setting(const Config& config, std::string_view key, std::string message, std::string hint) {
  throw Error(ErrorCode::kInput, subject_of(config, key), std::move(message), std::move(hint));
}

/// Without bf16 units each product is computed by conversions, tens of times slower than fp32 (`unidle check --speed`).
void warn_of_slow_bf16(const Config& config, at::Device device) {
  if (config.text("precision.amp") == "bf16" && device.is_cpu() && !telemetry::read_host_facts().cpu_bf16()) {
    spdlog::warn("{}: this CPU has no units for bf16, so that it is slower than fp32; use off here",
                 subject_of(config, "precision.amp"));
  }
}

/// Whether the workload, not the engine, reads the setting.
bool is_read_by_workload(std::string_view key) {
  constexpr std::array<std::string_view, 8> kKeys = {
      "data.crops_per_decode", "data.group",         "input.size",     "model.width",
      "model.depth",           "grad.checkpointing", "cache.features", "loss.perceptual_weight"};
  return key.starts_with("script.") || std::ranges::find(kKeys, key) != kKeys.end();
}

/// `script.*` is one group: a workload that reads one key reads all.
bool reads(const Effective& effective, const std::string& key) {
  return effective.contains(key) || (key.starts_with("script.") && effective.contains("script.loss"));
}

/// Training works with a learning rate that never leaves its warm-up, but this is seldom intended.
void warn_of_endless_warmup(const Config& config, int processes) {
  const std::int64_t step = batch_within_run(config, processes) * config.integer("batch.accumulation") * processes;
  const std::int64_t steps = config.integer("train.samples") / step;
  if (config.integer("optimizer.warmup_steps") > steps) {
    spdlog::warn("{}: the run ends after {} steps, before optimizer.lr is reached",
                 subject_of(config, "optimizer.warmup_steps"), steps);
  }
}

}  // namespace

const Config& checked_combinations(const Config& config, at::Device device, int processes) {
  if (config.text("precision.amp") == "fp16" && device.is_cpu()) {
    refuse_setting(config, "precision.amp", "fp16 needs a GPU, and this run is on the CPU", "use bf16 or off");
  }
  const std::int64_t micro_batches = config.integer("batch.accumulation");
  const std::int64_t samples = config.integer("train.samples");
  if (micro_batches > samples / processes) {
    const std::string shared = processes > 1 ? fmt::format(" in each of {} processes", processes) : "";
    refuse_setting(config, "batch.accumulation",
                   fmt::format("{} micro-batches a step{} are more than the {} samples of the run", micro_batches,
                               shared, samples),
                   "use a smaller batch.accumulation or a larger train.samples");
  }
  if (config.flag("train.deterministic") && config.flag("cudnn.benchmark")) {
    refuse_setting(config, "cudnn.benchmark", "algorithms chosen by their time differ from run to run",
                   "leave out cudnn.benchmark, or train.deterministic");
  }
  if (config.text("optimizer.schedule") == "one-cycle" && config.integer("optimizer.warmup_steps") > 0) {
    refuse_setting(config, "optimizer.warmup_steps", "the schedule one-cycle has a rise of its own",
                   "leave out optimizer.warmup_steps, or use the schedule cosine");
  }
  for (const char* key : {"ema.decay", "optimizer.momentum"}) {
    if (config.real(key) >= 1) {
      refuse_setting(config, key, fmt::format("expected a number below 1, found {}", config.text(key)), "0.999, say");
    }
  }
  const traits::Workload* workload = traits::find_workload(config.text("workload"));
  if (config.text("cache.features") == "disk" && workload != nullptr && workload->costly_samples &&
      !workload->feature_cache) {
    refuse_setting(config, "cache.features", fmt::format("the workload {} keeps nothing on disk", workload->name),
                   "use memory or off");
  }
  warn_of_slow_bf16(config, device);
  warn_of_endless_warmup(config, processes);
  return config;
}

std::vector<const Setting*> warn_of_unread(const Config& config, const Workload& workload) {
  const Effective read = workload.effective();
  std::vector<const Setting*> unread;
  for (const Setting& setting : all_settings()) {
    const std::string key(setting.name);
    const bool given = !config.location(key).empty() && config.text(key) != setting.fallback;
    if (given && is_read_by_workload(key) && !reads(read, key)) {
      spdlog::warn("{}: the workload {} does not read it", subject_of(config, key), config.text("workload"));
      unread.push_back(&setting);
    }
  }
  return unread;
}

std::map<std::string, std::string> shared_settings(const Config& config) {
  std::map<std::string, std::string> shared;
  for (const Setting& setting : all_settings()) {
    const bool of_machine = std::ranges::any_of(std::array{"cpu.", "cache.", "loader.", "prepare.", "ranks."},
                                                [&](const char* section) { return setting.name.starts_with(section); });
    if (!of_machine && !setting.name.ends_with(".folder")) {
      shared.emplace(setting.name, config.text(setting.name));
    }
  }
  return shared;
}

namespace {

std::string told_of(const data::Source& source) {
  std::string told = fmt::format("{} items of {} samples", source.items(), source.samples_per_item());
  for (const data::Field& field : source.fields()) {
    told += fmt::format("; {} {} [{}]", field.name, data::name_of(field.dtype), fmt::join(field.shape, ", "));
  }
  // For a table also its columns with their statistics, which reveal different rows.
  const nlohmann::json facts = parse_json(source.describe());
  return facts.contains("columns") ? told + "; columns " + json_text(facts["columns"], -1) : told;
}

}  // namespace

std::map<std::string, std::string> shared_data(const Workload& workload) {
  std::map<std::string, std::string> shared = {{"the training data", told_of(workload.source())}};
  if (const data::Source* held_out = workload.held_out(); held_out != nullptr) {
    shared.emplace("the held-out data", told_of(*held_out));
  }
  return shared;
}

std::int64_t batch_within_run(const Config& config, int processes) {
  return std::min(config.integer("batch.size"),
                  config.integer("train.samples") / (config.integer("batch.accumulation") * processes));
}

void throw_with_key(const Error& error, const Config& config) {
  if (error.subject() == "loader option batch") {
    throw Error(error.code(), subject_of(config, "batch.size"), error.message(), error.hint());
  }
  throw error;
}

}  // namespace unidle::train
