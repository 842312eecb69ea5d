#include "unidle/tune/trials/trial_store.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/log.h"
#include "unidle/experiment/working_folder.h"

namespace unidle::tune {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// Part of the identity: increase it when what a trial measures changes.
constexpr int kFormat = 7;
constexpr std::chrono::hours kOldest(24);

template <typename T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

std::optional<double> number_if_any(const json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

json kept_json(const TrialResult& result) {
  json suggestions = json::array();
  for (const Proposal& each : result.suggestions) {
    suggestions.push_back(
        {{"changes", each.changes}, {"reason", each.reason}, {"promise", each.promise}, {"safe", each.safe}});
  }
  json losses = json::array();
  for (const auto& [samples, loss] : result.losses) {
    losses.push_back({samples, loss});
  }
  return {{"ok", result.ok},
          {"problem", result.problem},
          {"rate", result.rate},
          {"loss", optional_json(result.loss)},
          {"loss_error", result.loss_error},
          {"loss_fall", result.loss_fall},
          {"losses", losses},
          {"effective", result.effective},
          {"refused", result.refused},
          {"seconds", result.seconds},
          {"step_rate", optional_json(result.step_rate)},
          {"metrics", result.metrics},
          {"validation_share", optional_json(result.validation_share)},
          {"others_cpus", optional_json(result.others_cpus)},
          {"own_cpus", optional_json(result.own_cpus)},
          {"lengths_vary", result.lengths_vary},
          {"suggestions", suggestions}};
}

TrialResult trial_of(const json& body) {
  TrialResult result;
  result.ok = body.at("ok").get<bool>();
  result.problem = body.at("problem").get<std::string>();
  result.rate = body.at("rate").get<double>();
  result.loss = number_if_any(body.at("loss"));
  result.loss_error = body.at("loss_error").get<double>();
  result.loss_fall = body.at("loss_fall").get<double>();
  for (const json& each : body.at("losses")) {
    if (!each.at(0).is_number_integer()) {
      continue;  // 1e30 does not fit any integer type
    }
    result.losses[each.at(0).get<long long>()] = each.at(1).is_number() ? each.at(1).get<double>() : std::nan("");
  }
  result.effective = body.at("effective").get<ReportedSettings>();
  result.refused = body.at("refused").get<std::map<std::string, std::string>>();
  result.seconds = body.at("seconds").get<double>();
  result.step_rate = number_if_any(body.at("step_rate"));
  result.metrics = body.at("metrics").get<std::map<std::string, double>>();
  result.validation_share = number_if_any(body.at("validation_share"));
  result.others_cpus = number_if_any(body.at("others_cpus"));
  result.own_cpus = number_if_any(body.at("own_cpus"));
  result.lengths_vary = body.at("lengths_vary").get<bool>();
  for (const json& each : body.at("suggestions")) {
    result.suggestions.push_back({knobs::settings_from(each.at("changes")), each.at("reason").get<std::string>(),
                                  each.at("promise").get<double>(), each.at("safe").get<bool>()});
  }
  return result;
}

json kept_json(const ProgramPlan& plan) {
  return {{"steps", plan.steps},           {"step_s", plan.step_s},   {"startup_s", plan.startup_s},
          {"expected_s", plan.expected_s}, {"limit_s", plan.limit_s}, {"settings", plan.settings},
          {"device", plan.device},         {"places", plan.places},   {"protection", to_string(plan.protection)},
          {"spare", plan.omitted},         {"choices", plan.choices}};
}

ProgramPlan plan_of(const json& body) {
  ProgramPlan plan;
  plan.steps = body.at("steps").get<long long>();
  plan.step_s = body.at("step_s").get<double>();
  plan.startup_s = body.at("startup_s").get<double>();
  plan.expected_s = body.at("expected_s").get<double>();
  plan.limit_s = body.at("limit_s").get<double>();
  plan.settings = knobs::settings_from(body.at("settings"));
  plan.device = body.at("device").get<std::string>();
  plan.places = body.at("places").get<std::map<std::string, std::string>>();
  plan.protection =
      experiment::protection_named(body.at("protection").get<std::string>()).value_or(experiment::Protection::kInPlace);
  plan.omitted = body.at("spare").get<knobs::OmittedOptions>();
  plan.choices = body.at("choices").get<knobs::OptionChoices>();
  return plan;
}

json kept_json(const TrialPlan& plan) {
  return {{"samples", plan.samples},
          {"warmup_samples", plan.warmup_samples},
          {"epoch_samples", optional_json(plan.epoch_samples)},
          {"expected_s", plan.expected_s},
          {"whole_epochs", plan.whole_epochs}};
}

TrialPlan trial_plan_of(const json& body) {
  TrialPlan plan;
  plan.samples = body.at("samples").get<long long>();
  plan.warmup_samples = body.at("warmup_samples").get<long long>();
  plan.epoch_samples = number_if_any(body.at("epoch_samples"));
  plan.expected_s = body.at("expected_s").get<double>();
  plan.whole_epochs = body.at("whole_epochs").get<bool>();
  return plan;
}

/// FNV-1a: only for file names, not for security.
std::string hashed(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const unsigned char byte : text) {
    hash = (hash ^ byte) * 1099511628211ULL;
  }
  return fmt::format("{:016x}", hash);
}

bool too_old(const fs::path& file) {
  std::error_code failure;
  const auto written = fs::last_write_time(file, failure);
  return failure || fs::file_time_type::clock::now() - written > kOldest;
}

std::optional<json> read_json(const fs::path& file) {
  const auto text = too_old(file) ? std::nullopt : try_read_file(file);
  json body = text ? parse_json(*text) : json();
  return body.is_object() ? std::optional(std::move(body)) : std::nullopt;
}

/// A file of another version, or a truncated one, counts as missing.
template <typename Read>
auto read_as(const fs::path& file, Read read) -> std::optional<decltype(read(json()))> {
  const auto body = read_json(file);
  try {
    return body ? std::optional(read(*body)) : std::nullopt;
  } catch (const json::exception&) {
    return std::nullopt;
  } catch (const Error&) {  // settings that this version does not know
    return std::nullopt;
  }
}

}  // namespace

std::string search_identity(const std::vector<std::string>& command, const fs::path& folder, const Hardware& hardware) {
  std::string identity = fmt::format("{} {} {} {} {} {}", kFormat, folder.string(), hardware.cpus, hardware.gpus,
                                     hardware.gpu_name, hardware.memory_bytes >> 30);
  for (const std::string& word : command) {
    identity += '\n' + word;
  }
  std::map<std::string, std::string> files;
  std::error_code failure;
  for (auto entry = fs::recursive_directory_iterator(folder, failure);
       !failure && entry != fs::recursive_directory_iterator(); entry.increment(failure)) {
    const std::string name = entry->path().filename();
    if (name == ".unidle" || name == "__pycache__" || name == ".git") {
      entry.disable_recursion_pending();
    } else if (experiment::is_program_text(*entry)) {
      files[entry->path().string()] =
          fmt::format("{} {}", entry->file_size(failure), entry->last_write_time(failure).time_since_epoch().count());
    }
  }
  for (const auto& [file, state] : files) {
    identity += '\n' + file + ' ' + state;
  }
  return identity;
}

TrialStore::TrialStore(const fs::path& home, const std::string& identity, Disk& disk)
    : folder_(home / hashed(identity)), disk_(disk) {}

std::optional<ProgramPlan> TrialStore::plan() const { return read_as(folder_ / "plan.json", plan_of); }

void TrialStore::keep(const ProgramPlan& plan) { write(folder_ / "plan.json", json_text(kept_json(plan), -1)); }

std::optional<TrialPlan> TrialStore::trial_plan() const { return read_as(folder_ / "trial-plan.json", trial_plan_of); }

void TrialStore::keep(const TrialPlan& plan) { write(folder_ / "trial-plan.json", json_text(kept_json(plan), -1)); }

std::optional<TrialResult> TrialStore::find(const knobs::Settings& changes, int number) const {
  return read_as(file_of(changes, number), trial_of);
}

void TrialStore::keep(const knobs::Settings& changes, int number, const TrialResult& result) {
  json body = kept_json(result);
  body["changes"] = changes;
  write(file_of(changes, number), json_text(body, -1));
}

void TrialStore::clear() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

fs::path TrialStore::file_of(const knobs::Settings& changes, int number) const {
  return folder_ / fmt::format("{}-{}.json", hashed(knobs::describe(changes)), number);
}

void TrialStore::write(const fs::path& file, const std::string& text) {
  if (broken_) {
    return;
  }
  try {
    make_folders(folder_, disk_);
    write_file_atomic(file, text, disk_);
  } catch (const Error& failure) {
    broken_ = true;
    spdlog::warn("a search that is killed will have to begin anew: {}", failure.what());
  }
}

std::string resumed_note(int trials) {
  return fmt::format(
      "{} trials were measured by an earlier search that did not come to its end; --fresh measures them anew", trials);
}

TrialResult ResumingRunner::run(const knobs::Settings& changes, double limit_s, std::stop_token stop) {
  const int number = runs_[knobs::describe(changes)]++;
  if (auto known = store_.find(changes, number)) {
    ++resumed_;
    inner_.recall(*known);
    return *known;
  }
  TrialResult result = inner_.run(changes, limit_s, stop);
  if (result.ok && !result.interrupted && !stop.stop_requested()) {
    store_.keep(changes, number, result);
  }
  return result;
}

}  // namespace unidle::tune
