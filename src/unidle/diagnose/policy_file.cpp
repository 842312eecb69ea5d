#include "unidle/diagnose/policy_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <variant>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::diagnose {

namespace {

struct Threshold {
  std::string_view name;
  std::variant<double Policy::*, std::int64_t Policy::*, int Policy::*> field;
};

constexpr std::array kThresholds = {
    Threshold{"min_steps", &Policy::min_steps},
    Threshold{"warning_share", &Policy::warning_share},
    Threshold{"critical_share", &Policy::critical_share},
    Threshold{"min_bound", &Policy::min_bound},
    Threshold{"workers_busy", &Policy::workers_busy},
    Threshold{"free_cpus", &Policy::free_cpus},
    Threshold{"cpus_full", &Policy::cpus_full},
    Threshold{"oversubscribed", &Policy::oversubscribed},
    Threshold{"workers_per_cpu", &Policy::workers_per_cpu},
    Threshold{"many_threads", &Policy::many_threads},
    Threshold{"restricted_cpus", &Policy::restricted_cpus},
    Threshold{"row_s", &Policy::row_s},
    Threshold{"slow_sample_s", &Policy::slow_sample_s},
    Threshold{"bursts", &Policy::bursts},
    Threshold{"deep_prefetch", &Policy::deep_prefetch},
    Threshold{"tail_ratio", &Policy::tail_ratio},
    Threshold{"tail_mean", &Policy::tail_mean},
    Threshold{"on_cpu", &Policy::on_cpu},
    Threshold{"disk_wait", &Policy::disk_wait},
    Threshold{"disk_read_bytes_per_s", &Policy::disk_read_bytes_per_s},
    Threshold{"padding", &Policy::padding},
    Threshold{"expensive_sample_s", &Policy::expensive_sample_s},
    Threshold{"min_epochs", &Policy::min_epochs},
    Threshold{"device_full", &Policy::device_full},
    Threshold{"syncs_per_step", &Policy::syncs_per_step},
    Threshold{"flushes_per_step", &Policy::flushes_per_step},
    Threshold{"flush_share", &Policy::flush_share},
    Threshold{"mostly", &Policy::mostly},
    Threshold{"launch_share", &Policy::launch_share},
    Threshold{"recompiles", &Policy::recompiles},
    Threshold{"recompile_limit", &Policy::recompile_limit},
    Threshold{"fixed_shapes", &Policy::fixed_shapes},
    Threshold{"fused_gain", &Policy::fused_gain},
    Threshold{"small_micro_batch", &Policy::small_micro_batch},
    Threshold{"far_from_full", &Policy::far_from_full},
    Threshold{"memory_target", &Policy::memory_target},
    Threshold{"max_batch_growth", &Policy::max_batch_growth},
    Threshold{"batch_max_wait", &Policy::batch_max_wait},
    Threshold{"precision_gain_cuda", &Policy::precision_gain_cuda},
    Threshold{"precision_gain_cpu", &Policy::precision_gain_cpu},
    Threshold{"fp16_capability", &Policy::fp16_capability},
    Threshold{"bf16_capability", &Policy::bf16_capability},
    Threshold{"tf32_capability", &Policy::tf32_capability},
    Threshold{"tf32_gain", &Policy::tf32_gain},
    Threshold{"low_precision_parameters", &Policy::low_precision_parameters},
    Threshold{"layout_gain_depthwise", &Policy::layout_gain_depthwise},
    Threshold{"validation_of_loop", &Policy::validation_of_loop},
    Threshold{"validation_of_loop_critical", &Policy::validation_of_loop_critical},
    Threshold{"validation_target", &Policy::validation_target},
    Threshold{"checkpoint_share", &Policy::checkpoint_share},
    Threshold{"startup_long_s", &Policy::startup_long_s},
    Threshold{"startup_info_share", &Policy::startup_info_share},
    Threshold{"startup_warning_share", &Policy::startup_warning_share},
    Threshold{"shared", &Policy::shared},
    Threshold{"throttled", &Policy::throttled},
    Threshold{"throttle_share", &Policy::throttle_share},
    Threshold{"memory_full", &Policy::memory_full},
    Threshold{"retries_per_step", &Policy::retries_per_step},
    Threshold{"others_cpus", &Policy::others_cpus},
    Threshold{"others_share", &Policy::others_share},
    Threshold{"metrics_interval", &Policy::metrics_interval},
    Threshold{"unexplained_share", &Policy::unexplained_share},
};

constexpr std::size_t bytes_of_fields() {
  std::size_t bytes = 0;
  for (const Threshold& threshold : kThresholds) {
    bytes += std::holds_alternative<int Policy::*>(threshold.field) ? sizeof(int) : sizeof(double);
  }
  return bytes;
}
static_assert((bytes_of_fields() + alignof(Policy) - 1) / alignof(Policy) * alignof(Policy) == sizeof(Policy),
              "every threshold of the policy has a row");

constexpr double kMost = 1e15;  // fits every type of a threshold but int, which has a bound of its own
constexpr double kMostInt = 1e9;

std::string place_of(const std::filesystem::path& path, const YAML::Mark& mark) {
  return mark.is_null() ? path.string() : fmt::format("{}:{}", path.string(), mark.line + 1);
}

YAML::Node load(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  try {
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw Error(ErrorCode::kInput, place_of(path, error.mark), "is no YAML: " + error.msg,
                "thresholds and their values were expected, such as warning_share: 0.2");
  }
}

const Threshold& threshold_of(const YAML::Node& key, const std::filesystem::path& path) {
  const std::string name = key.IsScalar() ? key.Scalar() : "";
  const auto found = std::find_if(kThresholds.begin(), kThresholds.end(),
                                  [&](const Threshold& threshold) { return threshold.name == name; });
  if (found == kThresholds.end()) {
    throw Error(ErrorCode::kInput, place_of(path, key.Mark()), fmt::format("there is no threshold \"{}\"", name),
                "unidle diagnose --print-policy lists them");
  }
  return *found;
}

/// `where`: the line, for what does not fit.
void set(const Threshold& threshold, const YAML::Node& value, const std::string& where, Policy& policy) {
  const bool real = std::holds_alternative<double Policy::*>(threshold.field);
  const double most = std::holds_alternative<int Policy::*>(threshold.field) ? kMostInt : kMost;
  double number = 0;
  const bool is_number = value.IsScalar() && YAML::convert<double>::decode(value, number) && std::isfinite(number);
  if (!is_number || number < 0 || number > most || (!real && number != std::floor(number))) {
    throw Error(ErrorCode::kInput, where,
                fmt::format("{}: {} does not fit", threshold.name,
                            value.IsScalar() ? fmt::format("\"{}\"", value.Scalar()) : "what stands there"),
                fmt::format("{} from 0 on was expected", real ? "a number" : "a whole number"));
  }
  std::visit([&](auto field) { policy.*field = static_cast<std::remove_reference_t<decltype(policy.*field)>>(number); },
             threshold.field);
}

}  // namespace

Policy read_policy(const std::filesystem::path& path) {
  const YAML::Node root = load(path);
  Policy policy;
  if (root.IsNull()) {
    return policy;  // an empty file, or comments alone
  }
  if (!root.IsMap()) {
    throw Error(ErrorCode::kInput, place_of(path, root.Mark()), "is no list of thresholds",
                "names and values were expected, such as warning_share: 0.2");
  }
  std::set<std::string_view> seen;
  for (const auto& entry : root) {
    const Threshold& threshold = threshold_of(entry.first, path);
    if (!seen.insert(threshold.name).second) {
      throw Error(ErrorCode::kInput, place_of(path, entry.first.Mark()), fmt::format("{} stands twice", threshold.name),
                  "each threshold was expected once");
    }
    set(threshold, entry.second, place_of(path, entry.first.Mark()), policy);
  }
  return policy;
}

std::string to_yaml(const Policy& policy) {
  std::string text;
  for (const Threshold& threshold : kThresholds) {
    text += fmt::format("{}: {}\n", threshold.name,
                        std::visit([&](auto field) { return fmt::format("{}", policy.*field); }, threshold.field));
  }
  return text;
}

}  // namespace unidle::diagnose
