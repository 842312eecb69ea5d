#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "unidle/base/numbers.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"
#include "unidle/knobs/knob.h"
#include "unidle/knobs/same_value.h"

namespace unidle::diagnose::rules {

namespace {

/// True for keys whose names are about speed; others (a title, a comment) may be meant for people only.
bool about_speed(std::string_view key) {
  static constexpr std::array<std::string_view, 16> kWords = {
      "worker", "prefetch", "pin_mem",       "persistent", "amp",   "precision", "bf16",   "fp16",
      "tf32",   "compile",  "channels_last", "batch",      "accum", "cache",     "device", "thread"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return key.find(word) != std::string_view::npos; });
}

std::string at(const std::string& location) { return location.empty() ? "" : " (" + location + ")"; }

/// True for batch sizes that may agree: the configured one may be for all devices or all micro-batches of a step, and
/// without a loader the live one is only an average.
bool same_batch(const Signals& signals, const std::string& configured, const std::string& effective) {
  const bool exact = signals.loader && signals.loader->batch_size;
  const bool one_device = !signals.parallel || *signals.parallel == "none";
  const auto whole = parse_number<long>(configured);
  const auto live = parse_number<long>(effective);
  const auto parts = parse_number<long>(signals.effective("batch.accumulation").value_or("1"));
  return !exact || !one_device || !whole || !live || (parts && *live * *parts == *whole);
}

/// True when the program went on with smaller batches after running out of memory.
bool shrunk_for_memory(const Signals& signals, const std::string& configured, const std::string& effective) {
  const auto whole = parse_number<double>(configured);
  const auto live = parse_number<double>(effective);
  return signals.gpu.ooms.value_or(0) > 0 && whole && live && *live < *whole;
}

/// True for values that do not really differ: one leaves the choice to the program, batches are counted differently, or
/// the model's parameters are in the 16-bit format that was asked for.
bool means_the_same(const Signals& signals, const std::string& knob, const account::KnobReading& pair) {
  if (knob == "precision.amp" && signals.model_in_16_bits()) {
    return knobs::in_effect(knob, *pair.configured, knobs::plain_value(signals.model_dtype));
  }
  return knob == "batch.size" && (same_batch(signals, *pair.configured, *pair.effective) ||
                                  shrunk_for_memory(signals, *pair.configured, *pair.effective));
}

/// The environment variable that explains the live value; empty when none does.
std::string overruling_variable(const account::KnobReading& pair) {
  for (const auto& [name, value] : pair.environment) {
    if (knobs::same_value(value, *pair.effective)) {
      return name;
    }
  }
  return "";
}

std::string difference(const Context& context, const std::string& knob, const account::KnobReading& pair) {
  const std::string configured_at = at(pair.configured_at);
  if (const std::string variable = overruling_variable(pair); !variable.empty()) {
    return context.say("{} is configured as {}{}, but {} is in effect, as the environment variable {} says", knob,
                       *pair.configured, configured_at, *pair.effective, variable);
  }
  if (!pair.unnamed_key.empty()) {
    return context.say("{} is configured as {}{}, but {} is in effect: no file of the program names the key {}", knob,
                       *pair.configured, configured_at, *pair.effective, pair.unnamed_key);
  }
  return context.say("{} is configured as {}{}, but {} is in effect", knob, *pair.configured, configured_at,
                     *pair.effective);
}

/// The configured value in the knob's form: a switch for mixed precision names no format. Nothing if the knob does not
/// have it.
std::optional<knobs::Value> wanted_value(const Context& context, const Policy& policy, const std::string& knob,
                                         const std::string& configured) {
  if (knob == "precision.amp" && knobs::plain_value(configured) == "true") {
    const auto capability = parse_number<double>(context.signals.gpu_capability.value_or(""));
    return capability && *capability < policy.bf16_capability ? "fp16" : "bf16";
  }
  const knobs::Knob* known = knobs::find_knob(knob);
  const knobs::Value value = knobs::reported_value(configured);
  return known == nullptr || knobs::takes(*known, value) ? std::optional(value)
                                                         : knobs::parse_value(*known, configured);
}

/// Mixed precision that is requested but off, on a CPU without units for it.
bool would_be_slower(const Context& context, const std::string& knob, const account::KnobReading& pair) {
  return knob == "precision.amp" && knobs::same_value(*pair.effective, "off") && context.on_cpu &&
         context.signals.cpu_bf16 == false;
}

/// More workers are requested than there are, and the run does not wait for its loader.
bool needs_no_more_workers(const Context& context, const Policy& policy, const std::string& knob,
                           const account::KnobReading& pair) {
  const auto wanted = parse_number<double>(*pair.configured);
  const auto now = parse_number<double>(*pair.effective);
  return knob == "loader.workers" && wanted && now && *wanted > *now && context.steady_input &&
         *context.steady_input < policy.warning_share;
}

/// A constant of the program may be for another branch of it, such as that for GPUs, and another batch size trains
/// differently.
bool of_another_branch(const std::string& knob, const account::KnobReading& pair) {
  return knob == "batch.size" && pair.configured_at.find(".py:") != std::string::npos;
}

/// "num_threads" of a program may be that of its samplers or readers. It is torch's where a file sets it, a call or a
/// variable overrules it, and there are CPUs for so many.
bool of_other_threads(const Context& context, const std::string& knob, const account::KnobReading& pair) {
  const auto wanted = parse_number<double>(*pair.configured);
  const bool by_torch = !pair.effective_at.empty() || !overruling_variable(pair).empty();
  const bool in_file = pair.configured_at.find(':') != std::string::npos;  // else a word of the command
  const bool in_program = !in_file || pair.configured_at.find(".py:") != std::string::npos;
  const bool too_many = wanted && context.cpus && *wanted > *context.cpus;
  return knob == "cpu.threads" && ((in_program && !by_torch) || too_many);
}

/// Adds every setting whose live value differs from the configured one. Returns how many could be compared.
int compare_settings(const Context& context, const Policy& policy, Finding& finding) {
  int compared = 0;
  for (const auto& [knob, pair] : context.signals.settings) {
    if (!pair.configured || !pair.effective) {
      continue;
    }
    ++compared;
    if (knobs::in_effect(knob, *pair.configured, *pair.effective) || means_the_same(context.signals, knob, pair) ||
        of_other_threads(context, knob, pair)) {
      continue;
    }
    if (!finding.where && !pair.configured_at.empty()) {
      finding.where = pair.configured_at;
    }
    finding.evidence.push_back(difference(context, knob, pair));
    if (would_be_slower(context, knob, pair)) {
      finding.evidence.push_back(
          context.say("this CPU has no units for 16-bit formats: in effect it would be slower, so remove it here"));
      continue;
    }
    if (needs_no_more_workers(context, policy, knob, pair)) {
      finding.evidence.push_back(context.say("the run hardly waits for its loader: it needs no more workers"));
      continue;
    }
    if (of_another_branch(knob, pair)) {
      continue;
    }
    if (knobs::matters_on(context.signals.device_kind, knob)) {
      finding.severity = Severity::kWarning;
    }
    finding.fixes.push_back(
        detail::make_fix(context, knob, wanted_value(context, policy, knob, *pair.configured),
                         "make the configured value reach the program, or remove it from the configuration"));
  }
  return compared;
}

void add_unread(const Context& context, Finding& finding) {
  for (const auto& [key, location] : context.signals.unread_keys) {
    if (about_speed(key)) {
      finding.severity = Severity::kWarning;
    }
    finding.evidence.push_back(context.say("nothing reads the key {}{}", key, at(location)));
    if (!finding.where && !location.empty()) {
      finding.where = location;
    }
  }
}

Evaluation evaluate_setting_ignored(const Context& context, const Policy& policy) {
  Finding finding;
  const int compared = compare_settings(context, policy, finding);
  add_unread(context, finding);
  if (!finding.evidence.empty()) {
    return finding;
  }
  if (compared == 0) {
    return Missing{context.say("settings both as configured and as they are in the live program")};
  }
  return Nothing{};
}

}  // namespace

const Rule& setting_ignored() {
  static const Rule kRule{
      .id = "setting-ignored",
      .verdict = Verdict::kUnknown,
      .title = "A configured value is not in effect",
      .topic = "settings",
      .explanation =
          "The configuration says one thing and the live program does another: a switch spelled as text, a value that "
          "another option overrides, a key under a name that nothing reads. Whoever tunes such a run tunes a file "
          "that has no effect.",
      .thresholds =
          "None: spellings of the same value (true, on, 1) are equal. A warning for every difference and for unread "
          "keys whose name is about speed. A hint for other unread keys; on a CPU, for settings that only a GPU has; "
          "for a batch size that is a constant of the program; for mixed precision that is off on a CPU without units "
          "for it; and for more workers where the run waits for its loader less than warning_share (10 %) of the wall "
          "time. Nothing is said of more threads than CPUs, and of threads in an option or a constant where no call "
          "and "
          "no variable sets torch's: they may be the program's own.",
      .needs = "settings as configured and as in effect, or the keys that the program did not read",
      .proposes = "the configured value of each knob",
      .evaluate = evaluate_setting_ignored,
      .counts = Counts::kOther,
      .sentence = "Your run does not use a value that is configured",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
