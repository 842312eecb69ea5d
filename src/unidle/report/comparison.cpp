#include "unidle/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "unidle/account/knob_readings.h"
#include "unidle/base/json.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/policy.h"
#include "unidle/knobs/same_value.h"
#include "unidle/record/note_types.h"
#include "unidle/report/learning.h"
#include "unidle/report/same_program.h"
#include "unidle/report/scaling.h"

namespace unidle::report {

namespace {

void add_step_means(Summary& summary, const account::StepMeans& means) {
  for (std::size_t part = 0; part < kPartCount; ++part) {
    if (means.seen[part]) {
      summary.step_s[part] = means.parts[part];
    }
  }
  summary.whole_step_s = means.step_s;
  summary.samples_per_step = means.samples_per_step;
}

/// The wait is measured in some steps, and the compute part is the mean of all: the former is no longer than the
/// latter.
void add_ranks(Summary& summary, const Account& account) {
  summary.ranks = std::max<std::size_t>(1, account.ranks.size());
  for (const account::RankTime& rank : account.ranks) {
    if (summary.ranks > 1 && rank.wait_s && account.timeline.process == rank.process && summary.step_s[kCompute]) {
      summary.rank_wait_s = std::min(*rank.wait_s, *summary.step_s[kCompute]);
    }
  }
}

/// Total power of all devices in W, mean while training.
std::optional<double> total_power(const account::Readings& readings) {
  std::optional<double> total;
  for (const std::string& subject : readings.subjects(record::series::kGpuPower)) {
    if (const auto watts = readings.mean(record::series::kGpuPower, &subject)) {
      total = total.value_or(0) + *watts;
    }
  }
  return total;
}

void add_machine(Summary& summary, const RunData& run, const Account& account) {
  summary.gpu_busy = account.gpu_utilisation;
  summary.own_cpus = account.cpus.own;
  summary.others_cpus = account.cpus.others;
  summary.cpu_busy = account.cpu_utilisation;
  summary.rough = summary.others_cpus && diagnose::others_disturb(*summary.others_cpus, *summary.own_cpus);
  const auto watts = total_power(account::Readings(run, account.timeline));
  if (watts && account.rates.training) {
    summary.energy_per_sample_j = *watts / *account.rates.training;
  }
}

bool has_settings(const RunData& run) {
  const account::KnobReadings readings = account::knob_readings(run);
  return std::any_of(readings.begin(), readings.end(), [](const auto& each) { return each.second.has_value(); });
}

bool differ(const std::optional<std::string>& a, const std::optional<std::string>& b) {
  return a && b ? !knobs::same_value(*a, *b) : a.has_value() != b.has_value();
}

bool went_wrong(const std::string& outcome) { return outcome == "failed" || outcome == "timed-out"; }

/// The class of the largest model, "" when unknown.
std::string model_of(const RunData& run) {
  std::string largest;
  std::int64_t most = -1;
  for (const record::Note& note : run.notes) {
    if (record::is_of(note, record::NoteType::kModel)) {
      const std::int64_t parameters = whole_in(note.body, "parameters").value_or(0);
      if (parameters > most) {
        most = parameters;
        largest = text_in(note.body, "class");
      }
    }
  }
  return largest;
}

/// Scripts with other names that train other models. A script that was renamed or rewritten trains the same one.
bool are_different_programs(const RunData& a, const RunData& b) {
  const auto program = [](const RunData& run) {
    const nlohmann::json command = run.meta_value(record::meta::kCommand);
    const bool is_command = command.is_array() && !command.empty() &&
                            std::ranges::all_of(command, [](const auto& word) { return word.is_string(); });
    return is_command ? record::run_name(command.get<std::vector<std::string>>()) : "";
  };
  const std::string of_a = program(a);
  const std::string of_b = program(b);
  const std::string model_a = model_of(a);
  const std::string model_b = model_of(b);
  return !of_a.empty() && !of_b.empty() && of_a != of_b && !model_a.empty() && !model_b.empty() && model_a != model_b;
}

void find_regressions(Comparison& c, const Translator& translator) {
  const auto slower = [&](experiment::SpeedChange change, const std::optional<experiment::Ratio>& of,
                          std::string_view what) {
    if (change == experiment::SpeedChange::kRegression) {
      c.regressions.push_back(translator.say("{} fell to {:.2f}x ({:.2f}x to {:.2f}x), beyond the tolerance of {}.",
                                             what, of->value, of->interval->low, of->interval->high,
                                             format_share(c.tolerance)));
    }
  };
  const bool fewer_ranks = c.b.ranks < c.a.ranks;  // which explains a lower rate
  if (!c.different_programs && !fewer_ranks && !c.may_be_others()) {
    if (c.total != experiment::SpeedChange::kFaster) {  // slower steps that a faster whole makes up for are no loss
      slower(c.training, c.training_ratio, translator.say("Training throughput"));
    }
    slower(c.total, c.total_ratio, translator.say("End-to-end throughput"));
  }
  if (!c.different_programs) {
    for (const experiment::Measure& measure : c.learning.measures) {
      if (!measure.held) {
        c.regressions.push_back(experiment::in_words(measure, translator.language) + translator.word("."));
      }
    }
  }
  if (went_wrong(c.b.outcome) && !went_wrong(c.a.outcome)) {
    c.regressions.push_back(c.b.outcome == "failed" ? translator.say("B's run failed.")
                                                    : translator.say("B's run was ended by its time limit."));
  }
}

using RatedPair = std::pair<Throughput, Throughput>;

std::optional<experiment::Ratio> ratio_between(const std::vector<RatedPair>& pairs,
                                               std::optional<account::Rate> Throughput::*which) {
  std::vector<experiment::PairOfRates> rates;
  for (const auto& [a, b] : pairs) {
    if (!(a.*which) || !(b.*which)) {
      return std::nullopt;
    }
    rates.push_back({{(a.*which)->value, (a.*which)->draws}, {(b.*which)->value, (b.*which)->draws}});
  }
  return experiment::ratio_of(rates);
}

RunPair training_pair(const RatedPair& pair) {
  const double a = pair.first.training ? pair.first.training->value : 0;
  const double b = pair.second.training ? pair.second.training->value : 0;
  return {a, b, a > 0 ? b / a : 0};
}

std::size_t middle_pair(const std::vector<RunPair>& pairs) {
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return pairs[a].ratio < pairs[b].ratio; });
  return order[order.size() / 2];
}

/// Demands on the losses follow from the differing settings, as in a search.
experiment::Parity learning_parity(std::span<const RunData> a, std::span<const RunData> b,
                                   const std::vector<SettingDifference>& differences, Language language) {
  std::set<std::string> changed;
  for (const SettingDifference& difference : differences) {
    changed.insert(difference.knob);
  }
  std::vector<experiment::LearningCurves> of_a;
  std::vector<experiment::LearningCurves> of_b;
  std::transform(a.begin(), a.end(), std::back_inserter(of_a), learning_curves);
  std::transform(b.begin(), b.end(), std::back_inserter(of_b), learning_curves);
  return experiment::parity_of(of_a, of_b, experiment::demand_of(changed), language);
}

void add_notes_of_runs(Comparison& c, std::span<const RunData> a, std::span<const RunData> b,
                       const Translator& translator) {
  const auto is_rough = [](const RunData& run) { return summarise(run).rough; };
  const auto rough = std::count_if(a.begin(), a.end(), is_rough) + std::count_if(b.begin(), b.end(), is_rough);
  if (rough > 0) {
    c.notes.push_back(translator.say("Other processes used the CPUs during {} of {} runs, so the rates are rough.",
                                     rough, a.size() + b.size()));
  }
  c.notes.push_back(translator.say(
      "{} runs of each, alternating: B/A is the median of the pairs, and the losses and metrics are those "
      "of all runs. Everything else is from the pair with the median ratio.",
      a.size()));
}

void add_notes(Comparison& c, const RunData& a, const RunData& b, const Translator& translator) {
  if (c.pairs.empty() && c.training_ratio && c.training_ratio->interval && !c.different_programs) {
    c.notes.push_back(
        translator.say("One run each: the intervals do not include the differences between runs of one program. unidle "
                       "fix and unidle optimize run both several times, alternating."));
  }
  if (has_settings(a) != has_settings(b)) {
    c.notes.push_back(
        translator.say("{} recorded no settings, so they are not compared.", has_settings(a) ? "B" : "A"));
  }
  for (const auto& [label, side] : {std::pair("A", &c.a), std::pair("B", &c.b)}) {
    if (!side->throughput.training && side->throughput.steps > 0) {
      c.notes.push_back(
          translator.say("{} has steps but no rate of samples, so there is no throughput to compare.", label));
    } else if (!side->throughput.training) {
      c.notes.push_back(translator.say("{} has no training steps, so there is no throughput to compare.", label));
    } else if (!side->throughput.training->interval) {
      c.notes.push_back(
          translator.say("{} has only {} steps after warm-up: too few to tell.", label, side->throughput.steps));
    }
  }
  for (const auto& [label, side] : {std::pair("A", &c.a), std::pair("B", &c.b)}) {
    for (const std::string& words :
         {imprecise_words(*side, label, translator), window_words(*side, label, translator)}) {
      if (!words.empty()) {
        c.notes.push_back(words);
      }
    }
  }
  if (c.a.samples_per_step && c.b.samples_per_step && *c.a.samples_per_step != *c.b.samples_per_step) {
    c.notes.push_back(translator.say("Steps differ in size: {} samples in A, {} in B. Compare samples, not steps.",
                                     format_number(*c.a.samples_per_step), format_number(*c.b.samples_per_step)));
  }
  if (const auto scaling = scaling_of(c, translator)) {
    if (const std::string lost = loss_words(*scaling, translator); !lost.empty()) {
      c.notes.push_back(lost);
    }
  }
  const experiment::Measure& loss = c.learning.measures.front();
  if (loss.verdict == experiment::Verdict::kNotComparable) {
    c.notes.push_back(translator.say("Loss parity could not be judged: {}.", loss.why));
  }
}

nlohmann::json first_present(const RunData& a, const RunData& b, const char* key) {
  for (const RunData* run : {&b, &a}) {
    if (const auto found = run->meta.find(key); found != run->meta.end() && !found->empty()) {
      return *found;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<SettingDifference> setting_differences(const RunData& a, const RunData& b) {
  if (!has_settings(a) || !has_settings(b)) {
    return {};  // nothing to compare with; a note says so
  }
  const account::KnobReadings of_a = account::knob_readings(a);
  const account::KnobReadings of_b = account::knob_readings(b);
  std::map<std::string, SettingDifference> all;
  for (const auto& [knob, reading] : of_a) {
    all[knob].configured_a = reading.configured;
    all[knob].effective_a = reading.effective;
  }
  for (const auto& [knob, reading] : of_b) {
    all[knob].configured_b = reading.configured;
    all[knob].effective_b = reading.effective;
  }
  std::vector<SettingDifference> out;
  for (auto& [knob, difference] : all) {
    difference.knob = knob;
    if (differ(difference.configured_a, difference.configured_b) ||
        differ(difference.effective_a, difference.effective_b)) {
      out.push_back(difference);
    }
  }
  return out;
}

Summary summarise(const RunData& run, const Account& account, std::uint64_t seed) {
  Summary summary;
  summary.name = run.name;
  summary.outcome = run.meta_text(record::meta::kOutcome);
  if (summary.outcome.empty()) {
    summary.outcome = "unknown";
  }
  summary.throughput = account::throughput(account, seed);
  summary.phases = account.phases;
  summary.wall_s = account.timeline.wall_s();
  summary.validations = static_cast<std::size_t>(account.timeline.validations);
  summary.checkpoints = static_cast<std::size_t>(account.timeline.checkpoints);
  summary.window = account.timeline.window;
  if (account.step) {
    add_step_means(summary, *account.step);
  }
  add_ranks(summary, account);
  add_machine(summary, run, account);
  return summary;
}

std::string window_words(const Summary& summary, const std::string& name, const Translator& translator) {
  return summary.window ? translator.say(
                              "The rates of {} are of the {} steps before its profiler's window: CUPTI stays attached "
                              "and slows the later ones.",
                              name, summary.throughput.steps)
                        : "";
}

std::string imprecise_words(const Summary& summary, const std::string& name, const Translator& translator) {
  return summary.rough ? translator.say(
                             "The rates of {} are rough: other processes used {} CPUs while it trained, and it "
                             "used {} itself.",
                             name, format_number(*summary.others_cpus), format_number(*summary.own_cpus))
                       : "";
}

Summary summarise(const RunData& run) { return summarise(run, account::account_of(run)); }

Comparison compare(const RunData& a, const RunData& b, double tolerance, Language language) {
  return compare(std::span(&a, 1), std::span(&b, 1), tolerance, language);
}

Comparison compare(std::span<const RunData> a, std::span<const RunData> b, double tolerance, Language language) {
  const Translator translator{language};
  std::vector<RatedPair> rates;
  for (std::size_t i = 0; i < a.size(); ++i) {
    // Different seeds: with equal ones, both sides' draws would be correlated and hide their noise.
    rates.emplace_back(account::throughput(account::account_of(a[i]), 2 * i + 1),
                       account::throughput(account::account_of(b[i]), 2 * i + 2));
  }
  std::vector<RunPair> pairs;
  std::transform(rates.begin(), rates.end(), std::back_inserter(pairs), training_pair);
  const std::size_t middle = middle_pair(pairs);
  const RunData& shown_a = a[middle];
  const RunData& shown_b = b[middle];
  Comparison c;
  c.tolerance = tolerance;
  c.a = summarise(shown_a, account::account_of(shown_a), 2 * middle + 1);
  c.b = summarise(shown_b, account::account_of(shown_b), 2 * middle + 2);
  c.training_ratio = ratio_between(rates, &Throughput::training);
  c.total_ratio = ratio_between(rates, &Throughput::total);
  c.training = experiment::judge_speed(c.training_ratio, tolerance);
  c.total = experiment::judge_speed(c.total_ratio, tolerance);
  c.settings = setting_differences(shown_a, shown_b);
  c.learning = learning_parity(a, b, c.settings, language);
  c.changes = first_present(shown_a, shown_b, "changes");
  c.trials = first_present(shown_a, shown_b, "trials");
  c.verification = first_present(shown_a, shown_b, "verification");
  c.different_programs = are_different_programs(shown_a, shown_b);
  if (pairs.size() > 1) {
    c.pairs = std::move(pairs);
  }
  c.unchanged = c.pairs.empty() && c.settings.empty() && same_program(shown_a, shown_b);
  find_regressions(c, translator);
  add_notes(c, shown_a, shown_b, translator);
  if (!c.pairs.empty()) {
    add_notes_of_runs(c, a, b, translator);
  }
  return c;
}

}  // namespace unidle::report
