#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/numbers.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"
#include "unidle/language/sentence.h"

namespace unidle::diagnose::rules {

namespace {

constexpr const char* kHow = "validate less often, or on less data";
/// From this part of the threshold on it is a hint: a run a little below should not be called free of it.
constexpr double kHintFrom = 0.75;

/// The validations of the loop, without those before the first step and of the trained model, which a longer interval
/// does not save.
struct Validations {
  std::int64_t count = 0;
  double seconds = 0;
  double share = 0;  // of the wall time
};

Validations validations_of_loop(const Context& context) {
  const Signals& signals = context.signals;
  const account::Tests tests = signals.tests.value_or(account::Tests{});
  if (signals.tests && !tests.beside_validations) {
    return {1, signals.time.validate, *context.validate};
  }
  const double seconds = detail::validated_between_steps_s(signals);
  const double part = signals.time.validate > 0 ? seconds / signals.time.validate : 0;
  return {std::max<std::int64_t>(1, detail::validations_between_steps(signals)), seconds, *context.validate * part};
}

struct Rarer {
  knobs::Change fix;
  std::optional<double> by = {};  // how much longer the interval becomes; absent when nothing can be said
};

/// By skipping calls when the program allows it, else by a longer interval in its own unit, which is null when the
/// present one is unknown. In words alone when a run of this length has too few validations for that.
Rarer rarer(const Context& context, double wanted) {
  const Signals& signals = context.signals;
  const double rarer_by = detail::rarer_validation_by(signals, wanted);
  if (rarer_by <= 1) {
    return {detail::code_fix(context, "validation.interval", kHow)};
  }
  if (!signals.validation_where.empty()) {
    const auto every = static_cast<double>(detail::effective_int(context, "validation.every").value_or(1));
    const double longer = std::ceil(every * rarer_by);
    return {detail::make_fix(context, "validation.every", static_cast<std::int64_t>(longer), kHow), longer / every};
  }
  // A program that has no such setting can only be edited.
  const auto setting = signals.settings.find("validation.interval");
  const bool has_setting = setting != signals.settings.end() && setting->second.configured;
  if (!has_setting) {
    return {detail::code_fix(context, "validation.interval", kHow), std::ceil(rarer_by)};
  }
  const auto interval = parse_number<double>(signals.effective("validation.interval").value_or(""));
  if (!interval || *interval <= 0) {
    return {detail::make_fix(context, "validation.interval", std::nullopt, kHow), std::ceil(rarer_by)};
  }
  // In whole units; in hundredths for an interval below one: 0.69, not 0.6900000000000001.
  const double whole = *interval * rarer_by < 1 ? 100 : 1;
  const double longer = std::ceil(*interval * rarer_by * whole) / whole;
  knobs::Change fix = longer < 1 ? detail::make_fix(context, "validation.interval", longer, kHow)
                                 : detail::make_fix(context, "validation.interval", std::llround(longer), kHow);
  return {std::move(fix), longer / *interval};
}

/// True when validation mostly waits for more workers than there are CPUs; adds what to do about that.
bool waits_for_workers(const Context& context, const Policy& policy, Finding& finding) {
  const Signals& signals = context.signals;
  const auto workers = signals.validation_workers.value_or(0);
  const double waited_s = std::min(signals.validation_wait_s.value_or(0), signals.time.validate);
  if (!context.cpus || static_cast<double>(workers) <= *context.cpus ||
      waited_s < policy.mostly * signals.time.validate) {
    return false;
  }
  finding.evidence.push_back(
      context.say("{} of that time waits for a loader with {} workers to start or to give a batch, on {} CPUs",
                  format_share(waited_s / signals.time.validate), workers, format_number(*context.cpus)));
  finding.where = detail::place(signals.validation_loader_where);
  finding.fixes.push_back(
      detail::code_fix(context, "loader.workers",
                       "start fewer workers for validation, or none, or keep them (persistent_workers=True)"));
  return true;
}

/// True when validation mostly waits for samples, as training does: the finding about samples says what to do.
bool waits_for_samples(const Context& context, const Policy& policy, Finding& finding) {
  if (context.validation_wait < policy.mostly * *context.validate) {
    return false;
  }
  finding.severity = Severity::kInfo;
  finding.evidence.push_back(context.say("{} of that time waits for batches, as training does",
                                         format_share(context.validation_wait / *context.validate)));
  return true;
}

/// Adds the function of the program in which much of the validation passes.
void name_function(const Context& context, Finding& finding) {
  const auto hot = detail::hot_function(
      context.signals, [](const HotLine& line) { return line.role == "train" && line.phase == "validate"; });
  if (!hot || hot->looks < detail::kEnoughStackSamples || hot->share < detail::kLeastShareOfStackSamples) {
    return;
  }
  detail::add_hot_function(context, *hot, finding);
}

Evaluation evaluate_validation_dominates(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.validations) {
    return Missing{context.say("when the program validates")};
  }
  if (!context.validate) {
    return Missing{context.say("the wall time of the run")};
  }
  if (*signals.validations < 1 || signals.time.train + signals.time.validate <= 0) {
    return Nothing{};
  }
  const Validations all = validations_of_loop(context);
  const double of_loop = all.seconds / (signals.time.train + all.seconds);
  if (of_loop < kHintFrom * policy.validation_of_loop || all.share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding;
  finding.share = all.share;
  finding.speedup_bound = amdahl(all.share);
  finding.where = detail::where_set(context, "validation.interval");
  if (!signals.validation_where.empty()) {
    finding.where = signals.validation_where;
  } else if (!signals.validation_called.empty()) {
    finding.where = signals.validation_called;
  }
  const double each_s = all.seconds / static_cast<double>(all.count);
  if (all.count == 1) {
    finding.evidence.push_back(
        context.say("the one validation took {}, {} of the loop; in a longer run that depends on how often it comes",
                    format_seconds(each_s), format_share(of_loop)));
    finding.severity = Severity::kWarning;
    if (!waits_for_workers(context, policy, finding)) {
      finding.severity = Severity::kInfo;
      finding.proposes = kHow;  // the program may have no such setting
    }
    return finding;
  }
  finding.severity = of_loop >= policy.validation_of_loop_critical ? Severity::kCritical
                     : of_loop >= policy.validation_of_loop        ? Severity::kWarning
                                                                   : Severity::kInfo;
  finding.evidence.push_back(context.say(
      "{} validations of {} each, one every {} of training: {} of the loop", all.count, format_seconds(each_s),
      format_seconds(signals.time.train / static_cast<double>(all.count)), format_share(of_loop)));
  if (signals.tests) {
    finding.evidence.push_back(context.say("validating the trained model after the last step takes another {}",
                                           format_seconds(signals.tests->seconds)));
  }
  if (!waits_for_samples(context, policy, finding) && !waits_for_workers(context, policy, finding)) {
    name_function(context, finding);
  }
  if (signals.validation_where.empty() && !signals.validation_kept.empty()) {
    finding.evidence.push_back(context.say("--apply validation.every is refused for this program: {}",
                                           translate_sentence(context.language, signals.validation_kept)));
  }
  Rarer change = rarer(context, policy.validation_target);
  if (change.by) {
    const auto count = static_cast<double>(all.count);
    finding.speedup_bound = amdahl(all.share * (1 - std::floor(count / *change.by) / count));
  }
  finding.fixes.push_back(std::move(change.fix));
  return finding;
}

}  // namespace

const Rule& validation_dominates() {
  static const Rule kRule{
      .id = "validation-dominates",
      .verdict = Verdict::kValidationBound,
      .title = "Validation takes an undue share of the loop",
      .topic = "validation",
      .explanation =
          "Validating after every few steps spends much of the run on evaluation instead of training. Unless a "
          "schedule, early stopping or the choice of the best checkpoint uses the results, a longer interval only "
          "makes them less frequent.",
      .thresholds =
          "From validation_of_loop (20 %) of training plus validation and warning_share (10 %) of the wall time; "
          "critical from validation_of_loop_critical (50 %) of training plus validation, and a hint from three "
          "quarters of validation_of_loop. A single validation is a hint, because nothing shows how often it comes, "
          "unless it mostly waits for more workers than CPUs. Validation that mostly waits for samples, as training "
          "does, is a hint too.",
      .needs = "validation times",
      .proposes =
          "validation.interval, or validation.every in a running program, so that validation takes about 10 % of the "
          "loop",
      .evaluate = evaluate_validation_dominates,
      .counts = Counts::kOther,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
