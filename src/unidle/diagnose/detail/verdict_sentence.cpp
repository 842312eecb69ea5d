#include "unidle/diagnose/detail/verdict_sentence.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "unidle/base/json.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::detail {

namespace {

constexpr double kMuch = 0.2;  // of the run, for a hint

std::string_view device_name(const Diagnosis& diagnosis, Language language) {
  const char* name = diagnosis.device.kind == "cpu" ? "CPU" : diagnosis.device.kind == "unknown" ? "device" : "GPU";
  return translate(language, name);
}

const Rule* rule_of(const Finding* finding) { return finding == nullptr ? nullptr : find_rule(finding->id); }

/// What an input-bound run waits for, according to the leading finding.
std::string_view waited_for(const Finding* finding, Language language) {
  if (finding != nullptr && !finding->waits.empty()) {
    return finding->waits;
  }
  const Rule* rule = rule_of(finding);
  return translate(language, rule == nullptr || rule->waits.empty() ? "for data" : std::string_view(rule->waits));
}

std::string wall_share(const Diagnosis& diagnosis, double seconds) {
  const PhaseTimes& time = diagnosis.time;
  const double wall = time.startup + time.train + time.validate + time.checkpoint + time.other;
  return format_share(wall > 0 ? seconds / wall : 0);
}

/// How much of the device's units is in use, appended to its busy share; empty when not sampled.
std::string units_in_words(const Device& device, Language language) {
  return device.sm_activity ? translate(language, " (its multiprocessors {})", format_share(*device.sm_activity)) : "";
}

/// On a CPU the training waits, while loaders may keep the CPUs busy.
std::string waiting_sentence(const Diagnosis& diagnosis, const Finding* finding, Language language) {
  const std::string_view cause = waited_for(finding, language);
  const std::string share = format_share(diagnosis.step.value_or(StepShares{}).input);
  if (diagnosis.device.kind == "cpu") {
    return diagnosis.step ? translate(language, "Your training waits {} of each step {}", share, cause)
                          : translate(language, "Your training waits {}", cause);
  }
  const std::string_view device = device_name(diagnosis, language);
  return diagnosis.step ? translate(language, "Your {} waits {} of each step {}", device, share, cause)
                        : translate(language, "Your {} waits {}", device, cause);
}

std::string communication_sentence(const Diagnosis& diagnosis, const Finding* finding, Language language) {
  const std::string share = format_share(finding == nullptr ? 0 : finding->share.value_or(0));
  return diagnosis.device.kind == "cpu"
             ? translate(language,
                         "Your training exchanges data between processes instead of computing for {} of the run", share)
             : translate(language, "Your {} exchanges data with others instead of computing for {} of the run",
                         device_name(diagnosis, language), share);
}

std::string validation_sentence(const Diagnosis& diagnosis, Language language) {
  return translate(language, "Your run spends {} of its time on validation",
                   wall_share(diagnosis, diagnosis.time.validate));
}

/// Whether a hint about the steps, or what lies between them, follows: "nothing holds this run up" would contradict it.
bool hints_at_steps(const Diagnosis& diagnosis, Language language) {
  const Rule* rule = hint_sentence(diagnosis, language).empty() ? nullptr : rule_of(&diagnosis.findings.front());
  return rule != nullptr && (rule->about_line || is_in_steps(rule->verdict));
}

std::string healthy_sentence(const Diagnosis& diagnosis, Language language) {
  const bool hint = hints_at_steps(diagnosis, language);
  if (!diagnosis.device.busy) {
    return std::string(translate(language, hint ? "Little holds this run up" : "Nothing holds this run up"));
  }
  const std::string busy = format_share(*diagnosis.device.busy) + units_in_words(diagnosis.device, language);
  if (diagnosis.taken) {
    return std::string(translate(language, "No other cause was found"));
  }
  if (diagnosis.underused && diagnosis.others_cpus && diagnosis.device.kind == "cpu") {
    return translate(
        language,
        "No cause was found in the program: it used {} of its CPUs while other processes used {} CPUs, so measure "
        "again without them",
        busy, format_number(*diagnosis.others_cpus));
  }
  const std::string_view device = device_name(diagnosis, language);
  if (hint && (diagnosis.underused || *diagnosis.findings.front().share >= kMuch)) {
    return translate(language, "No single cause was found: your {} is {} busy while it trains", device, busy);
  }
  if (diagnosis.underused) {
    return translate(language, "No cause was found: your {} is {} busy while it trains", device, busy);
  }
  if (hint) {
    return translate(language, "Little holds the training up: your {} is {} busy", device, busy);
  }
  return hint_sentence(diagnosis, language).empty()
             ? translate(language, "Nothing holds this run up: your {} is {} busy while it trains", device, busy)
             : translate(language, "Nothing holds the training up: your {} is {} busy", device, busy);
}

/// For a run without a known cause: states what was measured.
std::string unknown_sentence(const Diagnosis& diagnosis, Language language) {
  constexpr double kFull = 0.99;  // nothing is left that the trace may not show
  if (diagnosis.largest_idle) {
    return translate(language, "Your {} is {} busy, and no cause alone makes it idle for more than {} of the time",
                     device_name(diagnosis, language), format_share(*diagnosis.device.busy),
                     format_share(*diagnosis.largest_idle));
  }
  if (diagnosis.of_window && diagnosis.device.busy.value_or(0) >= kFull) {
    return translate(language, "Your {} is {} busy: nothing in this trace makes it wait",
                     device_name(diagnosis, language), format_share(*diagnosis.device.busy));
  }
  if (diagnosis.few_steps) {
    return translate(language, "The run finished fewer than {} training steps, too few to say what they wait for",
                     *diagnosis.few_steps);
  }
  if (const double other = diagnosis.step.value_or(StepShares{}).other;
      other >= kMuch && diagnosis.input_stated.empty()) {
    return translate(
        language,
        "Your run spends {} of each step outside model, optimiser and loader; what was read does not show in which "
        "lines",
        format_share(other));
  }
  if (diagnosis.device.busy.value_or(0) >= kFull && !diagnosis.of_window) {
    return translate(language, "Your {} is {} busy: nothing in what was read makes it wait",
                     device_name(diagnosis, language), format_share(*diagnosis.device.busy));
  }
  if (diagnosis.device.busy) {
    return translate(language, "Your {} is {} busy; what was read does not show why", device_name(diagnosis, language),
                     format_share(*diagnosis.device.busy) + units_in_words(diagnosis.device, language));
  }
  if (!diagnosis.input_stated.empty()) {
    return translate(language,
                     "Waiting for data takes {} of each step; what was read does not show where the rest of it goes",
                     format_share(diagnosis.step.value_or(StepShares{}).input));
  }
  if (diagnosis.time.train > 0) {
    return translate(language,
                     "Your run spends {} of its time training; what was read does not show what its steps wait for",
                     wall_share(diagnosis, diagnosis.time.train));
  }
  if (diagnosis.blind == "no-training") {
    return std::string(translate(language, "The program was followed and finished no training step"));
  }
  if (diagnosis.blind == "no-update") {
    return std::string(translate(language, "The program called models, and none of its optimisers made a step"));
  }
  if (diagnosis.blind == "no-times") {
    return std::string(translate(language, "What was read tells of training, but not what its time went into"));
  }
  return std::string(translate(language, "No training step was seen in what was read"));
}

std::string compute_sentence(const Diagnosis& diagnosis, const Finding* finding, Language language) {
  const std::string_view device = device_name(diagnosis, language);
  if (finding == nullptr && diagnosis.device.sm_activity) {
    return translate(language, "Kernels on your {} use few of its multiprocessors: SM activity is {}", device,
                     format_share(*diagnosis.device.sm_activity));
  }
  if (const Rule* rule = rule_of(finding); rule != nullptr && rule->shows == Symptom::kWorkersCrowded) {
    return translate(language, "Your {} computes {} of each step, and loader workers take CPU time from it", device,
                     format_share(diagnosis.step.value_or(StepShares{}).compute));
  }
  // The host's phases do not show when a GPU computes: it also computes while the host waits for it.
  return diagnosis.device.kind != "cpu" && diagnosis.device.busy
             ? translate(language, "Your {} is {} busy, and slower than it could be", device,
                         format_share(*diagnosis.device.busy))
             : translate(language, "Your {} computes {} of each step, slower than it could", device,
                         format_share(diagnosis.step.value_or(StepShares{}).compute));
}

}  // namespace

bool is_in_steps(Verdict verdict) {
  switch (verdict) {
    case Verdict::kInputBound:
    case Verdict::kTransferBound:
    case Verdict::kSyncBound:
    case Verdict::kLaunchBound:
    case Verdict::kComputeBound:
    case Verdict::kCommunicationBound: return true;
    default: return false;
  }
}

std::string sentence_of_rule(const Diagnosis& diagnosis, const Finding* finding, Language language) {
  const Rule* rule = rule_of(finding);
  if (rule == nullptr) {
    return "";
  }
  const std::string& sentence = finding->sentence.empty() ? rule->sentence : finding->sentence;
  if (sentence.empty() || (!finding->share && sentence.find("{share}") != std::string::npos)) {
    return "";
  }
  const std::string_view device_text = device_name(diagnosis, language);
  const auto device = fmt::arg("device", device_text);  // keeps a reference
  const std::string share_text = format_share(finding->share.value_or(0));
  const auto share = fmt::arg("share", share_text);
  const std::string where_text = finding->where.value_or("");
  const auto where = fmt::arg("where", where_text);
  return format_message(translate(language, sentence), sentence, fmt::make_format_args(device, share, where));
}

std::string hint_sentence(const Diagnosis& diagnosis, Language language) {
  if (diagnosis.verdict != Verdict::kHealthy || diagnosis.findings.empty() || !diagnosis.findings.front().share) {
    return "";
  }
  const Finding& hint = diagnosis.findings.front();
  const Rule* rule = rule_of(&hint);
  std::string sentence = sentence_of_rule(diagnosis, &hint, language);
  if (sentence.empty() && rule != nullptr && rule->verdict == Verdict::kValidationBound) {
    sentence = validation_sentence(diagnosis, language);
  }
  return sentence.empty() ? "" : translate(language, " {}.", sentence);
}

std::string most_computed(const Diagnosis& diagnosis, Language language) {
  constexpr double kMost = 0.5;
  const bool healthy = diagnosis.verdict == Verdict::kHealthy && !diagnosis.compute_in.empty();
  const bool one_line = healthy && !diagnosis.compute_in.front().is_backward &&
                        diagnosis.compute_in.front().of_line >= kMost && !diagnosis.compute_in.front().where.empty();
  return one_line ? translate(language, " {} of its computing is at {}.",
                              format_share(diagnosis.compute_in.front().of_line), diagnosis.compute_in.front().where)
                  : "";
}

std::string verdict_sentence(const Diagnosis& diagnosis, const Finding* finding, Language language) {
  if (std::string sentence = sentence_of_rule(diagnosis, finding, language); !sentence.empty()) {
    return sentence;
  }
  const StepShares step = diagnosis.step.value_or(StepShares{});
  const std::string_view device = device_name(diagnosis, language);
  switch (diagnosis.verdict) {
    case Verdict::kHealthy: return healthy_sentence(diagnosis, language);
    case Verdict::kInputBound: return waiting_sentence(diagnosis, finding, language);
    case Verdict::kTransferBound:
      return translate(language, "Your {} waits {} of each step for copies", device, format_share(step.transfer));
    case Verdict::kSyncBound:
      return translate(language, "Your host and {} wait for each other {} of each step", device,
                       format_share(step.sync));
    case Verdict::kLaunchBound:
      return translate(language, "Your {} finishes its work before it gets more, because its steps are too small",
                       device);
    case Verdict::kComputeBound: return compute_sentence(diagnosis, finding, language);
    case Verdict::kCommunicationBound: return communication_sentence(diagnosis, finding, language);
    case Verdict::kValidationBound: return validation_sentence(diagnosis, language);
    case Verdict::kOverheadBound:
      return translate(language, "Your run spends {} of its time on start-up and checkpoints",
                       wall_share(diagnosis, diagnosis.time.startup + diagnosis.time.checkpoint));
    case Verdict::kDeviceUnused:
      return std::string(translate(language, "Your model runs on the CPU, and a GPU is there or was asked for"));
    case Verdict::kFailed:
      return std::string(translate(
          language, diagnosis.outcome == Outcome::kTimedOut ? "The time limit ended the run" : "The run failed"));
    case Verdict::kUnknown: return unknown_sentence(diagnosis, language);
  }
  return "";
}

}  // namespace unidle::diagnose::detail
