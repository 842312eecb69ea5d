// The answer in one sentence.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "unidle/base/json.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose {

namespace {

constexpr double kMuch = 0.2;  // of the run, for a hint

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

std::string_view device_name(const Diagnosis& diagnosis, Language language) {
  const char* name = diagnosis.device.kind == "cpu" ? "CPU" : diagnosis.device.kind == "unknown" ? "device" : "GPU";
  return translate(language, name);
}

const Finding* strongest(const Diagnosis& diagnosis) {
  const bool has = !diagnosis.findings.empty() && diagnosis.findings.front().severity != Severity::kInfo;
  return has ? &diagnosis.findings.front() : nullptr;
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

/// The sentence that the leading finding's rule provides; empty when the verdict's sentence is used.
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

/// For a run without a cause: what takes most of its time beside training, if a hint says so; begins with a space.
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

/// The line of the program that computes most of a healthy run. The backward pass takes more than half of most
/// programs: a line of the forward pass that does is worth a look.
std::string most_computed(const Diagnosis& diagnosis, Language language) {
  constexpr double kMost = 0.5;
  const bool healthy = diagnosis.verdict == Verdict::kHealthy && !diagnosis.compute_in.empty();
  const bool one_line = healthy && !diagnosis.compute_in.front().is_backward &&
                        diagnosis.compute_in.front().of_line >= kMost && !diagnosis.compute_in.front().where.empty();
  return one_line ? translate(language, " {} of its computing is at {}.",
                              format_share(diagnosis.compute_in.front().of_line), diagnosis.compute_in.front().where)
                  : "";
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
    return translate(language,
                     "{} of each step lies outside model, optimiser and loader; what was read does not show in which "
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

/// For a run without a cause: the settings that hints propose, whose gain only a measurement shows; begins with a
/// space.
std::string untried_settings(const Diagnosis& diagnosis, Language language) {
  if (diagnosis.verdict != Verdict::kHealthy) {
    return "";
  }
  std::string settings;
  for (const Finding& hint : diagnosis.findings) {
    for (const knobs::Change& fix : hint.fixes) {
      if (fix.to && !fix.in_code && fix.knob_class != knobs::KnobClass::kSemantic) {
        settings += settings.empty() ? "" : translate(language, ", ");
        settings += fix.knob + "=" + fix.to->to_text();
      }
    }
  }
  return settings.empty() ? "" : translate(language, " Perhaps faster with {}: unidle fix measures it.", settings);
}

/// What to do, and the line to look at where that is not a setting.
struct Advice {
  std::string text;
  std::string where = {};
};

bool sets(const knobs::Change& fix) {
  return fix.in_program &&
         (!fix.in_program->after.empty() || !fix.in_program->call.empty() || !fix.in_program->command.empty());
}

/// The batch size and the number of micro-batches to a step: one alone changes what is trained.
std::optional<std::pair<const knobs::InProgram*, const knobs::InProgram*>> set_together(const Finding& finding) {
  std::vector<const knobs::InProgram*> batch;
  for (const knobs::Change& fix : finding.fixes) {
    if (fix.knob.starts_with("batch.") && fix.in_program) {
      batch.push_back(&*fix.in_program);
    }
  }
  return batch.size() == 2 ? std::optional(std::pair(batch[0], batch[1])) : std::nullopt;
}

/// The first fix that has a value, unless lines have to be changed first; else the first one in words, or what the rule
/// proposes.
Advice advice(const Finding& finding, Language language) {
  if (finding.fixes.empty() || !finding.fixes.front().in_code || finding.fixes.front().in_program) {
    if (const auto batch = set_together(finding)) {
      return {
          translate(language, "set {} and {}", in_words(*batch->first, language), in_words(*batch->second, language))};
    }
    for (const knobs::Change& fix : finding.fixes) {
      if (sets(fix)) {
        const std::string& where = fix.in_program->where;
        return {translate(language, "set {}", in_words(*fix.in_program, language)) +
                (where.empty() ? "" : fmt::format(" ({})", where))};
      }
      if (fix.to && fix.in_program) {  // no setting of the program
        return {fmt::format("{} ({}={})", fix.reason, fix.knob, fix.to->to_text())};
      }
      if (fix.to) {
        return {translate(language, "set {} to {}", fix.knob, *fix.to)};
      }
    }
  }
  const Rule* rule = rule_of(&finding);
  const bool named = rule != nullptr && rule->sentence.find("{where}") != std::string::npos;
  const std::string where = named ? "" : finding.where.value_or("");
  if (!finding.fixes.empty()) {
    return {finding.fixes.front().reason, where};
  }
  if (rule == nullptr) {
    return {};
  }
  return {std::string(translate(language, finding.proposes.empty() ? rule->proposes : finding.proposes)), where};
}

/// Stands before the answer: it holds for a run that others hold up.
std::string taken_sentence(const TakenCpus& cpus, Language language) {
  const std::string taken = format_number(cpus.taken);
  const std::string allowed = format_number(cpus.allowed);
  const std::string used = format_number(cpus.used);
  return cpus.threads
             ? translate(language,
                         "Other processes took {} of the {} CPUs of this run, which used {} and waited for more: "
                         "measure again without them, or beside them with OMP_NUM_THREADS={}. ",
                         taken, allowed, used, *cpus.threads)
             : translate(language,
                         "Other processes took {} of the {} CPUs of this run, which used {} and waited for more: "
                         "measure again without them. ",
                         taken, allowed, used);
}

constexpr double kDiffers = 1.2;

/// The bound of the steps alone.
double bound_of_steps(const Diagnosis& diagnosis, const Finding& finding) {
  constexpr double kMost = 0.98;  // of the time of the steps
  const PhaseTimes& time = diagnosis.time;
  if (!is_in_steps(diagnosis.verdict) || !(time.train > 0) || diagnosis.of_window) {
    return 0;
  }
  const double training = time.train / (time.startup + time.train + time.validate + time.checkpoint + time.other);
  const double won = std::min(1 - 1 / *finding.speedup_bound - finding.won_in_validation, kMost * training);
  return training / (training - won);
}

/// The bound of a finding, which is of the whole run. A short run is mostly start-up or its first epoch, and a longer
/// one gains more: what the steps alone can gain stands before it where that differs.
std::string at_best(const Diagnosis& diagnosis, const Finding& finding, Language language) {
  constexpr double kPrintsAboveOne = 1.05;  // below it {:.1f} prints 1.0x
  const double bound = finding.speedup_bound.value_or(0);
  if (bound < kPrintsAboveOne) {
    return "";
  }
  const auto longer = bound_of_longer_run(diagnosis, finding);
  if (!longer) {
    return translate(language, ", at best {:.1f}x as fast", bound);
  }
  return finding.later_bound.value_or(0) >= kDiffers * bound
             ? translate(language,
                         ", at best {:.1f}x as fast in training from the second epoch on and {:.1f}x in this run",
                         *longer, bound)
             : translate(language, ", at best {:.1f}x as fast in training and {:.1f}x in this run", *longer, bound);
}

bool ends_sentence(std::string_view text) {
  return text.ends_with('.') || text.ends_with('!') || text.ends_with('?') || text.ends_with("。");
}

}  // namespace

std::string in_words(const knobs::InProgram& change, Language language) {
  if (!change.command.empty()) {
    return translate(language, "{} on the command line", change.words);
  }
  return change.call.empty() ? change.words : translate(language, "{} in {}(...)", change.words, change.call);
}

namespace {

std::string answered(const Diagnosis& diagnosis, bool with_advice, Language language) {
  const Finding* finding = strongest(diagnosis);
  std::string text = verdict_sentence(diagnosis, finding, language);
  const std::string_view colon = translate(language, ": ");
  const std::string_view stop = translate(language, ".");
  if (finding != nullptr && !finding->failure.empty()) {
    text.append(colon).append(finding->failure);
  } else if (finding != nullptr && with_advice) {
    if (const Advice what = advice(*finding, language); !what.text.empty()) {
      if (diagnosis.verdict == Verdict::kUnknown && sentence_of_rule(diagnosis, finding, language).empty()) {
        text += translate(language, ". {}", title(*finding, language));  // the advice is not about what is unknown
      }
      text.append(colon).append(what.text);
      text += at_best(diagnosis, *finding, language);
      text += what.where.empty() ? "" : translate(language, "; see {}", what.where);
    }
  }
  text.erase(text.find_last_not_of(" \n:") + 1);  // quoted text may end with any character
  text.append(ends_sentence(text) ? "" : stop);
  text.append(most_computed(diagnosis, language));
  text.append(hint_sentence(diagnosis, language));
  text.append(untried_settings(diagnosis, language));
  if (!diagnosis.device.busy && !diagnosis.device.how.empty()) {
    text.append(translate(language, " Nothing is known about the device: {}.", diagnosis.device.how));
  }
  if (!diagnosis.idle_gpus.empty()) {
    text.append(translate(language, " GPU {} did nothing.", diagnosis.idle_gpus));
  }
  return text;
}

bool tells_of_others(const Diagnosis& diagnosis) { return diagnosis.taken && diagnosis.verdict != Verdict::kFailed; }

}  // namespace

std::optional<double> bound_of_longer_run(const Diagnosis& diagnosis, const Finding& finding) {
  if (finding.speedup_bound.value_or(0) <= 1) {
    return std::nullopt;
  }
  const double least = kDiffers * *finding.speedup_bound;
  if (finding.later_bound.value_or(0) >= least) {
    return finding.later_bound;
  }
  const double of_steps = bound_of_steps(diagnosis, finding);
  return of_steps >= least ? std::optional(of_steps) : std::nullopt;
}

std::string answer(const Diagnosis& diagnosis, Language language) {
  const std::string text = answered(diagnosis, true, language);
  return tells_of_others(diagnosis) ? taken_sentence(*diagnosis.taken, language) + text : text;
}

std::string problem(const Diagnosis& diagnosis, Language language) { return answered(diagnosis, false, language); }

std::string caution(const Diagnosis& diagnosis, Language language) {
  std::string text = tells_of_others(diagnosis) ? taken_sentence(*diagnosis.taken, language) : "";
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace unidle::diagnose
