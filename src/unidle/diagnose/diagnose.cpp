#include "unidle/diagnose/diagnose.h"

#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/context.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/in_program/in_program.h"
#include "unidle/diagnose/ranking.h"
#include "unidle/diagnose/rule.h"
#include "unidle/diagnose/signals_from_logs.h"
#include "unidle/diagnose/signals_from_record.h"
#include "unidle/language/sentence.h"

namespace unidle::diagnose {

const Rule* find_rule(std::string_view id) {
  const auto& rules = all_rules();
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const Rule* rule) { return rule->id == id; });
  return found == rules.end() ? nullptr : *found;
}

std::string_view title_of(const Finding& finding, const Rule& rule) {
  const bool hint = finding.severity == Severity::kInfo && !rule.hint_title.empty();
  return hint ? rule.hint_title : rule.title;
}

namespace {

/// True when the rule's loss comes from a host that waits for input or copies, rather than from a device that
/// alternates between copies and compute.
bool is_hidden(const Rule& rule) {
  const bool waits = rule.verdict == Verdict::kInputBound || rule.verdict == Verdict::kTransferBound;
  return waits && rule.counts == Counts::kHostTime;
}

bool is_about_samples(const Finding& finding) {
  const Rule* rule = find_rule(finding.id);
  return rule != nullptr && rule->about_samples;
}

/// True for numpy.__getattr__ and the like, which Python calls and no line of a program names.
bool is_special(std::string_view function) {
  const std::string_view name = function.substr(function.rfind('.') + 1);
  return name.starts_with("__") && name.ends_with("__");
}

/// The largest named part of the idle time; none where a larger part has no name, or nearly none is idle.
std::optional<double> largest_idle(const DeviceTimeline& timeline) {
  constexpr double kLeast = 0.01;
  const double largest =
      std::max({timeline.input, timeline.compile, timeline.allocator, timeline.sync, timeline.copy_calls,
                timeline.launch, timeline.host - timeline.unnamed, timeline.profiler, timeline.queued});
  return largest >= kLeast && largest > timeline.unseen + timeline.unnamed ? std::optional(largest) : std::nullopt;
}

/// Adds the ranks, and the part of the step in which the training process waits for others.
void show_ranks(const Signals& signals, Diagnosis& diagnosis) {
  diagnosis.ranks = signals.ranks;
  for (const RankTime& rank : signals.ranks) {
    if (signals.training_process == rank.process && rank.wait_s && rank.parts && signals.step) {
      diagnosis.exchange = std::min(*rank.wait_s / rank.step_s, signals.step->compute);
    }
  }
}

/// GPUs that the run held: those that a log lists, or one for each rank.
double gpus_held(const Signals& signals) {
  const bool from_logs = signals.command.empty();
  const auto listed = static_cast<std::size_t>(from_logs ? std::max(0, signals.gpus.value_or(0)) : 0);
  return static_cast<double>(std::max({std::size_t{1}, listed, signals.ranks.size()}));
}

std::optional<Cost> cost_of(const Signals& signals, const Policy& policy) {
  const PhaseTimes& time = signals.time;
  const double held_s = time.startup + time.train + time.validate + time.checkpoint + time.other;
  const bool on_gpu = signals.device_kind == "cuda" || signals.device_kind == "rocm";
  const bool only_a_window = signals.timeline && signals.timeline->alone;
  if (!on_gpu || !signals.device_busy || held_s <= 0 || only_a_window) {
    return std::nullopt;
  }
  const double gpus = gpus_held(signals);
  const double idle = std::clamp(1 - *signals.device_busy, 0.0, 1.0);
  const bool phases_known = time.train > 0;
  const double idle_s = phases_known ? time.startup + time.train * idle : held_s * idle;
  constexpr double kHour = 3600;
  return Cost{gpus * held_s / kHour, gpus * idle_s / kHour,
              policy.gpu_hour_price > 0 ? std::optional(policy.gpu_hour_price) : std::nullopt};
}

/// Where a run on CPUs computes, the functions with an undue share. A GPU computes later than the line that asks for
/// it.
std::vector<ComputePlace> compute_places(const Signals& signals) {
  std::vector<ComputePlace> places;
  if (signals.device_kind != "cpu") {
    return places;
  }
  const auto computes = [](const HotLine& line) { return line.role == "train" && line.phase == "train"; };
  std::int64_t all = 0;
  for (const HotLine& line : signals.hot) {
    all = std::max(all, computes(line) ? line.total : 0);
  }
  for (const detail::HotFunction& hot : detail::hot_functions(signals, computes)) {
    const double of_all = static_cast<double>(hot.looks) / static_cast<double>(all);
    if (all >= detail::kEnoughStackSamples && hot.share * of_all >= detail::kLeastShareOfStackSamples) {
      places.push_back({hot.share * of_all, hot.text(), hot.where, hot.of_line * of_all});
    }
  }
  return places;
}

void add_arithmetic(const Signals& signals, Diagnosis& diagnosis) {
  const auto steps_per_s = signals.flops_step_s ? std::optional(1 / *signals.flops_step_s) : diagnosis.steps_per_s;
  if (!signals.flops_per_step || !steps_per_s) {
    return;
  }
  diagnosis.arithmetic = {*signals.flops_per_step, *signals.flops_per_step * *steps_per_s, std::nullopt};
  // Nothing exceeds its peak: then the count or the peak is wrong.
  if (signals.peak_s_per_step && *signals.peak_s_per_step * *steps_per_s <= 1) {
    diagnosis.arithmetic->utilisation = *signals.peak_s_per_step * *steps_per_s;
  }
}

/// What was measured, without a judgement.
Diagnosis measured(const Signals& signals, const Policy& policy) {
  Diagnosis diagnosis;
  diagnosis.outcome = signals.outcome;
  diagnosis.device = {signals.device_kind,   signals.device_busy, signals.device_busy_how,
                      signals.busy_is_limit, signals.sm_activity, signals.tensor_activity};
  diagnosis.samples_per_s = signals.samples_per_s;
  diagnosis.steps_per_s = signals.steps_per_s;
  diagnosis.rated_before_window = signals.rated_before_window;
  if (!diagnosis.steps_per_s && !signals.rated_before_window && signals.step_s && *signals.step_s > 0) {
    diagnosis.steps_per_s = 1 / *signals.step_s;
  }
  if (signals.others_cpus_used && signals.cpus_used &&
      others_disturb(*signals.others_cpus_used, *signals.cpus_used, policy)) {
    diagnosis.others_cpus = signals.others_cpus_used;
  }
  add_arithmetic(signals, diagnosis);
  diagnosis.underused = signals.device_busy && *signals.device_busy < policy.healthy_busy;
  if (signals.timeline && signals.timeline->alone) {
    diagnosis.of_window = true;
    diagnosis.largest_idle = largest_idle(*signals.timeline);
  }
  diagnosis.time = signals.time;
  diagnosis.cost = cost_of(signals, policy);
  diagnosis.command = signals.command;
  diagnosis.run_options = signals.run_options;
  diagnosis.omitted = signals.omitted;
  diagnosis.blind = signals.blind;
  diagnosis.step = signals.step;
  show_ranks(signals, diagnosis);
  if (signals.step_lengths_seen && signals.steps.value_or(0) > 0 && too_few_steps(signals, policy)) {
    diagnosis.few_steps = policy.min_steps;
  }
  diagnosis.input_stated = signals.input_stated;
  diagnosis.tokens_per_s = signals.tokens_per_s;
  diagnosis.tokens_per_device = signals.tokens_per_device;
  diagnosis.idle_gpus = signals.idle_gpus;
  diagnosis.compute_in = compute_places(signals);
  return diagnosis;
}

/// What makes samples cheaper for training makes them cheaper for validation.
void add_validation_wait(const Rule& rule, const Context& context, Finding& finding) {
  constexpr double kLeast = 0.02;
  const bool of_samples = rule.about_samples && rule.verdict == Verdict::kInputBound && finding.speedup_bound;
  if (!of_samples || finding.severity == Severity::kInfo || context.validation_wait < kLeast) {
    return;
  }
  finding.speedup_bound = amdahl(1 - 1 / *finding.speedup_bound + context.validation_wait);
  finding.won_in_validation = context.validation_wait;
  finding.evidence.push_back(
      context.say("validation waits for batches as well: {} of the wall time", format_share(context.validation_wait)));
}

/// Removes fixes that are in effect already, and those that this run was asked for and refused.
void leave_out_done_or_refused(const Context& context, Finding& finding) {
  const std::map<std::string, std::string>& refused = context.signals.refused;
  std::erase_if(finding.fixes, [&](const knobs::Change& fix) {
    if (!fix.in_code && fix.from && fix.from == fix.to) {
      return true;
    }
    const auto found = refused.find(fix.knob);
    if (fix.in_code || found == refused.end()) {
      return false;
    }
    finding.evidence.push_back(context.say("this run was asked for {} and refused it: {}", fix.knob,
                                           translate_sentence(context.language, found->second)));
    return true;
  });
}

/// Adds what the rule itself cannot know: the reader's language, what the device hides, and other readings' words.
Finding completed(Finding finding, const Rule& rule, const Context& context) {
  const Signals& signals = context.signals;
  finding.id = rule.id;
  for (std::string& evidence : finding.evidence) {
    evidence = std::string(translate(context.language, evidence));  // messages without numbers are still English here
  }
  if (context.hidden_by_device && is_hidden(rule)) {
    finding.evidence.push_back(
        context.say("the device computes meanwhile: only what it idles, {} of the wall time, can be won back",
                    format_share(*context.idle_between)));
  }
  add_validation_wait(rule, context, finding);
  leave_out_done_or_refused(context, finding);
  if (rule.told != nullptr) {
    const std::vector<std::string>& told = signals.*(rule.told);
    finding.evidence.insert(finding.evidence.end(), told.begin(), told.end());
  }
  if (const auto called = signals.called.find(finding.where.value_or(""));
      called != signals.called.end() && !is_special(called->second)) {
    finding.evidence.push_back(context.say("{} calls {}", called->first, called->second));
  }
  return finding;
}

/// Asks each rule.
void evaluate_rules(const Context& context, const Policy& policy, Diagnosis& diagnosis) {
  for (const Rule* rule : all_rules()) {
    Evaluation evaluation = rule->evaluate(context, policy);
    if (auto* finding = std::get_if<Finding>(&evaluation)) {
      diagnosis.findings.push_back(completed(std::move(*finding), *rule, context));
    } else if (auto* missing = std::get_if<Missing>(&evaluation)) {
      diagnosis.abstained.push_back({rule->id, std::string(translate(context.language, missing->signal))});
    }
  }
}

}  // namespace

Diagnosis diagnose(const Signals& signals, const Policy& policy, Language language) {
  Diagnosis diagnosis = measured(signals, policy);
  const Context context = make_context(signals, policy, language);
  if (context.crowded_out) {
    const auto threads = signals.settings.find("cpu.threads");
    const bool set_by_program = threads != signals.settings.end() && !threads->second.effective_at.empty();
    diagnosis.taken = TakenCpus{*context.cpus_taken, *signals.cpus_used, *context.cpus,
                                set_by_program ? std::nullopt : threads_beside_others(context, policy)};
  }
  const Policy judging = without_start_up(policy, signals);
  evaluate_rules(context, judging, diagnosis);
  rank(diagnosis.findings, policy);
  diagnosis.folded = fold(diagnosis.findings, language);
  const auto first = std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(), is_about_samples);
  if (first != diagnosis.findings.end() && first->severity != Severity::kInfo) {
    detail::add_source(context, *first);
  }
  diagnosis.verdict = verdict_of(diagnosis.findings, diagnosis.abstained, context, judging);
  if (diagnosis.verdict == Verdict::kFailed && signals.outcome != Outcome::kTimedOut) {
    diagnosis.outcome = Outcome::kFailed;
  }
  return diagnosis;
}

Diagnosis diagnose_record(const std::filesystem::path& path, const Policy& policy, Language language) {
  const Signals signals = read_signals(record::Reader(path), language);
  Diagnosis diagnosis = diagnose(signals, policy, language);
  put_in_program(signals, policy, diagnosis, language);
  return diagnosis;
}

std::string cacheable_function(const record::Reader& record) {
  const auto function = detail::cacheable_within(read_signals(record));
  return function ? function->where : std::string();
}

Diagnosis diagnose_logs(const std::vector<std::filesystem::path>& files, const Policy& policy, Language language,
                        const logs::OnRead& on_read) {
  return diagnose(read_log_signals(files, language, on_read), policy, language);
}

}  // namespace unidle::diagnose
