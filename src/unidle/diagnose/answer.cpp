// The answer in one sentence.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "unidle/base/json.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/detail/verdict_sentence.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose {

namespace {

const Finding* strongest(const Diagnosis& diagnosis) {
  const bool has = !diagnosis.findings.empty() && diagnosis.findings.front().severity != Severity::kInfo;
  return has ? &diagnosis.findings.front() : nullptr;
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
  const Rule* rule = find_rule(finding.id);
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
  if (!detail::is_in_steps(diagnosis.verdict) || !(time.train > 0) || diagnosis.of_window) {
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
  std::string text = detail::verdict_sentence(diagnosis, finding, language);
  const std::string_view colon = translate(language, ": ");
  const std::string_view stop = translate(language, ".");
  if (finding != nullptr && !finding->failure.empty()) {
    text.append(colon).append(finding->failure);
  } else if (finding != nullptr && with_advice) {
    if (const Advice what = advice(*finding, language); !what.text.empty()) {
      if (diagnosis.verdict == Verdict::kUnknown && detail::sentence_of_rule(diagnosis, finding, language).empty()) {
        text += translate(language, ". {}", title(*finding, language));  // the advice is not about what is unknown
      }
      text.append(colon).append(what.text);
      text += at_best(diagnosis, *finding, language);
      text += what.where.empty() ? "" : translate(language, "; see {}", what.where);
    }
  }
  text.erase(text.find_last_not_of(" \n:") + 1);  // quoted text may end with any character
  text.append(ends_sentence(text) ? "" : stop);
  text.append(detail::most_computed(diagnosis, language));
  text.append(detail::hint_sentence(diagnosis, language));
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
