#include "unidle/diagnose/detail/finding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "unidle/base/json.h"
#include "unidle/base/units.h"
#include "unidle/knobs/knob.h"
#include "unidle/knobs/same_value.h"
#include "unidle/language/sentence.h"
#include "unidle/traits/workload.h"

namespace unidle::diagnose::detail {

namespace {

/// A loader of our package names some settings differently and lacks others.
void put_for_package(const LoaderFacts& loader, knobs::Change& fix) {
  const knobs::Knob* knob = knobs::find_knob(fix.knob);
  if (knob == nullptr || (knob->change.code_place != "loader" && knob->change.code_place != "dataset")) {
    return;
  }
  fix.by_hand = knob->change.package_argument.empty() || loader.made_with != "unidle";
  if (!knob->change.package_code.empty() && fix.to) {
    fix.reason += ": " + fmt::format(fmt::runtime(knob->change.package_code), *fix.to);
  }
}

Waits family_of(const SyncCall& call) {
  if (call.call == "synchronize") {
    return Waits::kSynchronize;
  }
  return call.call == "empty_cache" || call.call == "gc" ? Waits::kFlush : Waits::kReads;
}

/// True for a run of our own engine with a workload whose features can be kept on disk.
bool has_feature_cache(const Signals& signals) {
  const auto named = signals.settings.find("workload");
  const bool known = named != signals.settings.end() && named->second.configured;
  const traits::Workload* workload = known ? traits::find_workload(*named->second.configured) : nullptr;
  return workload != nullptr && workload->feature_cache;
}

}  // namespace

Finding of_share(double share, const Policy& policy) {
  Finding finding;
  finding.share = share;
  finding.severity = severity_of(share, policy);
  finding.speedup_bound = amdahl(share);
  return finding;
}

knobs::Change make_fix(const Context& context, std::string knob, std::optional<knobs::Value> to, std::string_view how) {
  const auto now = context.signals.effective(knob);
  knobs::Change fix = knobs::change_of(std::move(knob), now ? std::optional(knobs::reported_value(*now)) : std::nullopt,
                                       std::move(to), std::string(translate(context.language, how)));
  const auto told = context.signals.settings.find(fix.knob);
  if (told != context.signals.settings.end() && !told->second.written.empty()) {
    fix.written = told->second.written;
    fix.written_at = told->second.configured_at;
  }
  if (context.signals.loader && context.signals.loader->of_package()) {
    put_for_package(*context.signals.loader, fix);
  }
  return fix;
}

knobs::Change code_fix(const Context& context, std::string knob, std::string_view how) {
  knobs::Change fix = make_fix(context, std::move(knob), {}, how);
  fix.in_code = true;
  fix.by_hand = true;
  return fix;
}

knobs::Change keep_samples_fix(const Context& context, std::string_view how) {
  const bool anew = context.signals.loader && context.signals.loader->dataset_anew.value_or(false);
  const bool for_later_runs = has_feature_cache(context.signals);
  knobs::Change fix = make_fix(context, "cache.features", anew || for_later_runs ? "disk" : "memory", how);
  if (anew) {
    fix.reason += context.say("; on disk: what memory keeps goes with the data set, which is made anew");
  } else if (for_later_runs) {
    fix.reason += context.say("; on disk: later runs find it there");
  }
  return fix;
}

knobs::Change one_launch_fix(const Context& context) {
  const bool engine = context.signals.settings.contains("workload");
  return engine
             ? make_fix(context, "compile.mode", "graph", "launch the step as one graph")
             : make_fix(context, "compile.mode", "reduce-overhead", "torch.compile(model, mode=\"reduce-overhead\")");
}

std::optional<std::string> place(const std::string& place) {
  return place.empty() ? std::nullopt : std::optional(place);
}

std::string format_noted_bytes(double bytes) {
  constexpr double kMost = 0x1p62;
  return format_bytes(bytes > 0 ? static_cast<std::uint64_t>(std::min(bytes, kMost)) : 0);
}

std::optional<std::string> place_of_samples(const Signals& signals) {
  if (!signals.loader) {
    return std::nullopt;
  }
  const LoaderFacts& loader = *signals.loader;
  return place(loader.dataset_where.empty() ? loader.where : loader.dataset_where);
}

std::optional<std::string> where_set(const Context& context, const std::string& knob) {
  const auto found = context.signals.settings.find(knob);
  return found == context.signals.settings.end() ? std::nullopt : place(found->second.configured_at);
}

std::optional<std::string> where_loader(const Context& context, const std::string& knob) {
  if (auto where = where_set(context, knob)) {
    return where;
  }
  return context.signals.loader ? place(context.signals.loader->where) : std::nullopt;
}

std::optional<std::int64_t> effective_int(const Context& context, const std::string& knob) {
  const auto text = context.signals.effective(knob);
  if (!text) {
    return std::nullopt;
  }
  return knobs::reported_value(*text).integer();
}

std::optional<bool> effective_on(const Context& context, const std::string& knob) {
  const auto text = context.signals.effective(knob);
  return text ? std::optional(!knobs::same_value("off", *text)) : std::nullopt;
}

double validated_between_steps_s(const Signals& signals) {
  const double tests_s = signals.tests.value_or(account::Tests{}).seconds;
  return std::max(0.0, signals.time.validate - tests_s - signals.dry_runs.value_or(account::Tests{}).seconds);
}

std::int64_t validations_between_steps(const Signals& signals) {
  const std::int64_t tests = signals.tests.value_or(account::Tests{}).count;
  const std::int64_t dry_runs = signals.dry_runs.value_or(account::Tests{}).count;
  return std::max<std::int64_t>(0, signals.validations.value_or(0) - tests - dry_runs);
}

double rarer_validation_by(const Signals& signals, double wanted) {
  const std::int64_t unknown = signals.dry_runs ? 0 : 1;  // the first one may be a dry run
  const double most = signals.validations ? static_cast<double>(validations_between_steps(signals) - unknown)
                                          : std::numeric_limits<double>::infinity();
  if (signals.time.train <= 0 || most <= 1) {
    return 1;
  }
  return std::clamp(longer_validation_interval(signals.time.train, validated_between_steps_s(signals), wanted), 1.0,
                    most);
}

double collate_share(const Signals& signals) {
  if (!signals.loader || signals.loader->collate_where.empty() || !signals.samples || !signals.samples->collate_s) {
    return 0;
  }
  const double all_s = signals.samples->total_s + *signals.samples->collate_s;
  return all_s > 0 ? *signals.samples->collate_s / all_s : 0;
}

void add_collate(const Context& context, const Policy& policy, Finding& finding) {
  const double share = collate_share(context.signals);
  if (share < policy.mostly) {
    return;
  }
  const LoaderFacts& loader = *context.signals.loader;
  finding.evidence.push_back(context.say("{} of making a batch is its collate function, {} ({})", format_share(share),
                                         loader.collate, loader.collate_where));
}

void add_stages(const Context& context, Finding& finding) {
  static constexpr std::array<std::string_view, 4> kNames = {"reading files", "decoding pictures", "changing pictures",
                                                             "copying into the batch"};
  constexpr double kLeastShare = 0.005;  // less shows as 0 %
  const std::vector<double>& seconds = context.signals.loader_stages_s;
  const double all_s = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  if (all_s <= 0 || seconds.size() != kNames.size()) {
    return;
  }
  std::vector<std::size_t> order = {0, 1, 2, 3};
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return seconds[a] > seconds[b]; });
  std::string text;
  for (const std::size_t stage : order) {
    const double share = seconds[stage] / all_s;
    if (share >= kLeastShare) {
      text += (text.empty() ? "" : ", ") + std::string(translate(context.language, kNames[stage])) + " " +
              format_share(share);
    }
  }
  finding.evidence.push_back(context.say("what the loader's threads spend their time on: {}", text));
}

void add_source(const Context& context, Finding& finding) {
  if (!context.signals.loader || !context.signals.loader->source) {
    return;
  }
  const SourceFacts& source = *context.signals.loader->source;
  const std::string& where = source.where.empty() ? context.signals.loader->where : source.where;
  if (!source.left.empty()) {
    finding.evidence.push_back(
        context.say("unidle.data has a source for such data ({}): {}; left to you: {}", where, source.code,
                    translate_sentence(context.language, fmt::format("{}", fmt::join(source.left, "; ")))));
  } else {
    finding.evidence.push_back(
        context.say("unidle.data gives the same samples by threads ({}): {}", where, source.code));
  }
  if (!source.note.empty()) {
    finding.evidence.push_back(translate_sentence(context.language, source.note));
  }
  if (source.left.empty() && !source.patch.empty()) {
    knobs::Change fix =
        make_fix(context, "loader.replace", true,
                 finding.fixes.empty()
                     ? "take the samples from unidle.data; review these lines, which need the package unidle in this "
                       "Python"
                     : "or take the samples from unidle.data instead; review these lines, which need the package "
                       "unidle in this Python");
    fix.from = false;
    fix.by_hand = true;  // it changes the order of random draws, so only on request
    fix.patch = source.patch;
    finding.fixes.push_back(std::move(fix));
  }
}

bool samples_can_be_kept(const Context& context) {
  const Signals& signals = context.signals;
  if (signals.loader && (signals.loader->map_style == false || signals.loader->of_package())) {
    return false;
  }
  return !samples_differ(signals) || kept_within(signals);
}

double part_to_keep(const Signals& signals) { return samples_differ(signals) ? kept_within(signals)->share : 1; }

bool samples_differ(const Signals& signals) {
  return signals.samples && signals.samples->compared_samples > 0 ? signals.samples->differ()
                                                                  : signals.loader && !signals.loader->draws.empty();
}

std::int64_t workers_that_hide(const Context& context, double work_s, const Policy& policy) {
  constexpr double kMostlyWaits = 2;
  const double cpus = std::max(1.0, std::floor(context.cpus.value_or(2)));
  const double rest_s = std::max(context.rest_s.value_or(0), 1e-9);
  double most = workers_on(context, std::max(1.0, cpus - 1), policy);
  if (cpus == 2 && work_s / most > kMostlyWaits * rest_s) {  // the training thread waits, and leaves its CPU
    most = std::max(most, cpus);
  }
  return std::llround(std::clamp(std::ceil(work_s / rest_s - 1e-6), 1.0, most));
}

std::optional<double> free_cpus(const Context& context) {
  const Signals& signals = context.signals;
  if (!context.cpus || !signals.cpus_used) {
    return std::nullopt;
  }
  double free = *context.cpus - *signals.cpus_used;
  if (signals.host_cpus_used && signals.cpus_online) {
    free = std::min(free, *signals.cpus_online - *signals.host_cpus_used);  // other processes use this machine too
  }
  return std::max(0.0, free);
}

std::optional<bool> cpus_full(const Context& context, const Policy& policy) {
  const auto free = free_cpus(context);
  return free ? std::optional(*free <= (1 - policy.cpus_full) * *context.cpus) : std::nullopt;
}

bool run_fills(const Context& context, double cpus, const Policy& policy) {
  return *context.signals.cpus_used + context.cpus_taken.value_or(0) >= policy.cpus_full * cpus;
}

std::string cpu_use_in_words(const Context& context, const Policy& policy) {
  const double own = *context.signals.cpus_used;
  const double others = context.signals.others_cpus_used.value_or(0);
  const std::string used = format_number(own);
  const std::string allowed = format_number(context.cpus.value_or(own));
  return others_disturb(others, own, policy) ? context.say("the run uses {} of its {} CPUs, and other processes use {}",
                                                           used, allowed, format_number(others))
                                             : context.say("the run uses {} of its {} CPUs", used, allowed);
}

std::optional<Finding> earlier_attempt(const Context& context, bool time_limit) {
  const auto& attempts = context.signals.earlier_attempts;
  const auto first = std::find_if(attempts.begin(), attempts.end(),
                                  [&](const EarlierAttempt& attempt) { return attempt.time_limit == time_limit; });
  if (first == attempts.end()) {
    return std::nullopt;
  }
  Finding finding;
  finding.severity = Severity::kInfo;
  finding.evidence = {first->said, std::string(context.say("a later attempt went on with the training"))};
  return finding;
}

std::optional<WaitFacts> waits_of(const Signals& signals, Waits family) {
  if (!signals.syncs || signals.steps.value_or(0) < 1) {
    return std::nullopt;
  }
  WaitFacts facts;
  double all_s = 0;
  std::int64_t count = 0;
  std::int64_t in_steps = 0;
  for (const SyncCall& call : *signals.syncs) {
    all_s += family_of(call) == Waits::kFlush ? 0 : call.seconds;
    if (family_of(call) != family) {
      continue;
    }
    facts.per_step += static_cast<double>(call.in_step) / static_cast<double>(*signals.steps);
    facts.seconds += call.seconds;
    count += call.count;
    in_steps += call.in_step;
    if (facts.top == nullptr || call.in_step > facts.top->in_step) {
      facts.top = &call;
    }
  }
  facts.of_all = all_s > 0 ? std::min(1.0, facts.seconds / all_s) : 1;
  facts.outside = count > 0 ? std::clamp(1 - static_cast<double>(in_steps) / static_cast<double>(count), 0.0, 1.0) : 0;
  return facts;
}

double lost_by_calls(const Context& context, double calls, double outside) {
  return context.idle && !context.keeps_up ? std::min(calls, *context.idle + outside) : calls;
}

std::optional<double> lost_by_waiting(const Context& context, double waits) {
  if (context.on_cpu) {
    return waits;
  }
  return context.idle ? std::optional(std::min(waits, *context.idle)) : std::nullopt;
}

std::string stalls_in_words(const Context& context, const account::Stalls& stalls) {
  const std::string every = stalls.every_steps ? context.say("every {} steps", std::lround(*stalls.every_steps))
                                               : context.say("every {}", format_seconds(*stalls.every_s));
  return context.say("{} a step takes {} longer than the usual {}, {} times in all", every,
                     format_seconds(stalls.each_s), format_seconds(stalls.usual_step_s), stalls.count);
}

}  // namespace unidle::diagnose::detail
