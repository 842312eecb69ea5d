#include "unidle/tune/fix.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>

#include "unidle/account/account.h"
#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/process.h"
#include "unidle/base/secrets.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/nodes.h"
#include "unidle/diagnose/rule.h"
#include "unidle/logs/sniff.h"
#include "unidle/observe/recovery.h"
#include "unidle/record/listing.h"
#include "unidle/record/note_types.h"
#include "unidle/tune/advice/suggestions.h"
#include "unidle/tune/repeatable.h"
#include "unidle/tune/trials/applied.h"
#include "unidle/tune/trials/apply_runner.h"

namespace unidle::tune {

namespace fs = std::filesystem;

namespace {

/// The first run, one trial, and a pair that verifies it.
constexpr double kLeastRuns = 4;
/// The first run, one trial, and four pairs.
constexpr double kUsualRuns = 10;
constexpr double kLeastBudget_s = 300;
constexpr double kMostBudget_s = 1800;
/// Only the budget ends the trials of the few changes.
constexpr int kMostTrials = 100;
/// The first one fills a cache.
constexpr double kEpochsOfCache = 2;

/// The finding that a proposal of suggestions_of() is from, and the reason that follows its id.
std::pair<std::string, std::string> split_reason(const std::string& reason) {
  const std::size_t colon = reason.find(": ");
  return {reason.substr(0, colon), colon == std::string::npos ? "" : reason.substr(colon + 2)};
}

const diagnose::Finding* find(const diagnose::Diagnosis& diagnosis, const std::string& id) {
  const auto found = std::ranges::find(diagnosis.findings, id, &diagnose::Finding::id);
  return found == diagnosis.findings.end() ? nullptr : &*found;
}

const knobs::Change* fix_of(const diagnose::Finding& finding, const std::string& knob) {
  const auto found = std::ranges::find(finding.fixes, knob, &knobs::Change::knob);
  return found == finding.fixes.end() ? nullptr : &*found;
}

std::string where_of(const diagnose::Finding& finding, const std::string& knob) {
  if (const knobs::Change* fix = fix_of(finding, knob); fix != nullptr) {
    if (fix->in_program && (fix->in_program->word || !fix->in_program->where.empty())) {
      return fix->in_program->where;
    }
    if (!fix->written_at.empty()) {
      return fix->written_at;
    }
  }
  const bool first = !finding.fixes.empty() && finding.fixes.front().knob == knob;
  return first ? finding.where.value_or("") : "";
}

std::vector<Attempt> attempts_of(std::vector<Proposal> proposals, const diagnose::Diagnosis& diagnosis,
                                 const knobs::Settings& settings) {
  std::ranges::stable_sort(proposals, std::greater(), &Proposal::promise);
  std::vector<Attempt> attempts;
  std::set<std::string> known;
  for (const Proposal& proposal : proposals) {
    const auto [id, how] = split_reason(proposal.reason);
    const diagnose::Finding* finding = find(diagnosis, id);
    for (const auto& [knob, value] : proposal.changes) {
      if (known.insert(knob).second && settings.in_force(knob) != value) {
        Attempt attempt{knobs::change_of(knob, settings.in_force(knob), value, how), id};
        if (finding != nullptr) {
          attempt.where = where_of(*finding, knob);
          if (const knobs::Change* fix = fix_of(*finding, knob); fix != nullptr) {
            attempt.change.in_program = fix->in_program;
            attempt.change.knob_class = fix->knob_class;
            attempt.change.depends = fix->depends;
          }
        }
        attempts.push_back(std::move(attempt));
      }
    }
  }
  return attempts;
}

/// A fix that is not tried. `can_try`: the program would take it.
ByHand left_to_person(const diagnose::Finding& finding, const diagnose::Rule& rule, const knobs::Change& fix,
                      const std::function<bool(const knobs::Settings&)>& can_try) {
  ByHand left{finding.id, rule.title, fix.reason, fix.written_at.empty() ? finding.where.value_or("") : fix.written_at};
  left.knob = fix.knob;
  if (fix.in_program && (fix.in_code || fix.by_hand)) {
    left.words = diagnose::in_words(*fix.in_program, Language::kEnglish);
    left.command = fix.in_program->command;
    left.where = fix.in_program->where.empty() ? left.where : fix.in_program->where;
  } else if (!fix.in_code && fix.to) {
    left.setting = fix.knob + ": " + (fix.from ? fmt::format("{} -> ", *fix.from) : "") + fix.to->to_text();
  }
  if (!fix.in_code && fix.to && fix.knob_class == knobs::KnobClass::kSemantic && can_try({{fix.knob, *fix.to}})) {
    left.what = "may change what is trained; tried only with --allow semantic";
  }
  return left;
}

std::vector<ByHand> by_hand_of(const diagnose::Diagnosis& diagnosis, const std::vector<Attempt>& attempts,
                               const std::function<bool(const knobs::Settings&)>& can_try) {
  const auto is_tried = [&](const knobs::Change& fix) {
    return std::ranges::any_of(attempts, [&](const Attempt& attempt) { return attempt.change.knob == fix.knob; });
  };
  std::vector<ByHand> left;
  for (const diagnose::Finding& finding : diagnosis.findings) {
    const diagnose::Rule* rule = diagnose::find_rule(finding.id);
    if (finding.severity == diagnose::Severity::kInfo || rule == nullptr) {
      continue;
    }
    if (finding.fixes.empty()) {
      left.push_back({finding.id, rule->title, diagnose::proposal(finding), finding.where.value_or("")});
    }
    for (const knobs::Change& fix : finding.fixes) {
      if (fix.in_code || !is_tried(fix)) {
        left.push_back(left_to_person(finding, *rule, fix, can_try));
      }
    }
  }
  return left;
}

/// The recorded run, from which the length of a trial is estimated.
class RecordedRun {
 public:
  explicit RecordedRun(const record::Reader& reader)
      : run_(account::load_run(reader)),
        account_(account::account_of(run_)),
        settings_(known_settings(effective_settings(run_))) {}

  /// The steps that a trial needs to show these changes: a cache gains from the second epoch on, and a longer interval
  /// needs one validation.
  long long steps_for(const knobs::Settings& changes) const {
    double steps = static_cast<double>(kCalibrationSteps);
    for (const auto& [knob, value] : changes) {
      if (knob == "cache.features") {
        steps = std::max(steps, kEpochsOfCache * epoch_steps(run_, settings_));
      } else if (knob == "validation.every") {
        steps = std::max(steps, steps_between_validations() * static_cast<double>(value.integer().value_or(1)));
      }
    }
    return static_cast<long long>(std::ceil(std::min(steps, static_cast<double>(steps_().size()))));
  }

  /// The time from the start of the run to the end of this step.
  double seconds_of(long long steps) const {
    if (steps_().empty()) {
      return 0;
    }
    const std::int64_t start_ns = run_.meta_time(record::meta::kStartNs).value_or(steps_().front().t_ns);
    const std::size_t last = std::min(steps_().size(), static_cast<std::size_t>(steps)) - 1;
    return std::max(0.0, seconds(steps_()[last].t_ns + steps_()[last].duration_ns - start_ns));
  }

 private:
  const std::vector<record::Step>& steps_() const { return account_.timeline.steps; }
  double steps_between_validations() const {
    const std::int64_t validations = account_.timeline.validations - account_.timeline.dry_runs;
    return static_cast<double>(steps_().size()) / static_cast<double>(std::max<std::int64_t>(1, validations));
  }

  account::RunData run_;
  account::Account account_;
  knobs::Settings settings_;
};

/// Chooses the budget where none was given, and leaves out the changes whose trials do not fit into it. Throws kUsage
/// when none does.
void fit_budget(const RecordedRun& run, double asked_s, FixPlan& plan) {
  const auto run_s = [&](const Proposal& proposal) { return run.seconds_of(run.steps_for(proposal.changes)); };
  const auto [shortest, longest] = std::ranges::minmax(plan.proposals, {}, run_s);
  plan.budget_s = asked_s > 0 ? asked_s : std::clamp(kUsualRuns * run_s(longest), kLeastBudget_s, kMostBudget_s);
  const double least_s = kLeastRuns * run_s(shortest);
  if (plan.budget_s < least_s) {
    throw Error(
        ErrorCode::kUsage, fmt::format("--budget {:.0f}s", plan.budget_s),
        fmt::format("is too short: at least {:.0f} runs are needed, and one of this program takes about {:.1f} s",
                    kLeastRuns, run_s(shortest)),
        fmt::format("--budget {:.0f}s leaves a margin", std::ceil(1.5 * least_s / 10) * 10));
  }
  std::erase_if(plan.proposals, [&](const Proposal& proposal) {
    const double each_s = run_s(proposal);
    const bool fits = kLeastRuns * each_s <= plan.budget_s;
    if (!fits) {
      plan.notes.push_back(
          fmt::format("{} is not tried: its effect shows only in runs of {:.0f} s; --budget {:.0f}s is enough for that",
                      knobs::describe(proposal.changes), each_s, std::ceil(kUsualRuns * each_s / 10) * 10));
      std::erase_if(plan.attempts, [&](const Attempt& attempt) {
        return proposal.changes.contains(attempt.change.knob) &&
               attempt.change.to == proposal.changes.at(attempt.change.knob);
      });
    }
    return !fits;
  });
  for (const Proposal& proposal : plan.proposals) {
    plan.least_steps = std::max(plan.least_steps, run.steps_for(proposal.changes));
  }
  plan.run_s = run.seconds_of(plan.least_steps);
}

/// Whether the Python of a command finds the package unidle. False for other programs.
bool has_package(const std::vector<std::string>& command, const fs::path& folder) {
  constexpr const char* kFind = "#\nimport importlib.util as u; raise SystemExit(not u.find_spec('unidle'))";
  constexpr std::chrono::seconds kLimit(10);
  if (!fs::path(command.front()).filename().string().starts_with("python")) {
    return false;
  }
  Command find;
  find.argv = {command.front(), "-c", kFind};
  find.folder = folder;
  find.in = Command::Stream::kNull;
  try {
    return run_to_end(std::move(find), kLimit).status.ok();
  } catch (const Error&) {
    return false;
  }
}

/// The record itself, as far as it is one of a run of one machine.
record::Reader open_record(const fs::path& path) {
  const std::vector<fs::path> nodes = diagnose::records_of_nodes(path);
  if (nodes.size() > 1) {
    throw Error(ErrorCode::kInput, path.string(), "holds the records of several nodes, and trials run on this one",
                "unidle diagnose says what to change");
  }
  if (nodes.empty() && logs::sniff(path).kind != logs::Kind::kRecord) {
    throw Error(ErrorCode::kInput, path.string(), "is a log, which does not say how to run its program again",
                "record a run: unidle run -- CMD ...");
  }
  return record::Reader(nodes.empty() ? path : nodes.front());
}

/// What `unidle run --apply` changed in the recorded run.
knobs::Settings taken_in(const record::Reader& reader, const knobs::Settings& asked) {
  knobs::Settings taken = asked;
  for (const auto& [knob, applied] : applied_settings(reader, asked)) {
    if (!applied.taken) {
      taken.erase(knob);
    }
  }
  return taken;
}

/// Everything but how long a run takes.
FixPlan plan_of_record(const record::Reader& reader, const diagnose::Diagnosis& diagnosis, const FixOptions& options) {
  const account::RunData run = account::load_facts(reader);
  const Repeatable repeatable = repeatable_command(run, diagnosis, options.command);
  if (const std::size_t steps = reader.last_steps(kLeastSteps).size(); steps < kLeastSteps) {
    throw Error(ErrorCode::kInput, reader.folder().string(),
                fmt::format("shows {} training steps, and a trial needs {}", steps, kLeastSteps),
                "unidle diagnose says what was seen");
  }
  FixPlan plan;
  plan.record = reader.folder();
  plan.answer = diagnose::answer(diagnosis);
  plan.time = diagnosis.time;
  plan.command = repeatable.command;
  plan.folder = repeatable.folder;
  plan.notes = repeatable.notes;
  ProgramPlan program = plan_from_record(reader, run, diagnosis, plan.command);
  plan.run_options = diagnosis.run_options;
  plan.run_options.applied = taken_in(reader, diagnosis.run_options.applied);
  program.applied = plan.run_options.applied;
  if (!program.applied.empty()) {
    plan.notes.push_back(
        fmt::format("all runs keep what was applied in the recorded one: {}", knobs::describe(program.applied)));
  }
  plan.edits = edits_of(diagnosis, command_of(program, plan.command));
  std::erase_if(plan.edits, [&](const auto& edit) {
    return needs_package(edit.second) && !has_package(plan.command, plan.folder);
  });
  program.edits = plan.edits;
  const auto is_possible = [&](const knobs::Settings& changes) { return can_try(program, plan.command, changes); };
  // Hints would only lengthen the trials of a run for which there is something better to try.
  for (const auto& proposals_of : {suggestions_of, hints_of}) {
    if (plan.attempts.empty()) {
      plan.proposals = proposals_of(diagnosis, options.allow_semantic);
      std::erase_if(plan.proposals, [&](const Proposal& proposal) { return !is_possible(proposal.changes); });
      plan.attempts = attempts_of(plan.proposals, diagnosis, program.settings);
    }
  }
  plan.by_hand = by_hand_of(diagnosis, plan.attempts, is_possible);
  return plan;
}

}  // namespace

FixPlan plan_fix(const FixOptions& options) {
  observe::recover(options.record);
  const record::Reader reader = open_record(options.record);
  FixPlan plan = plan_of_record(reader, diagnose::diagnose_record(reader.folder()), options);
  if (options.language != Language::kEnglish) {  // now: the record may be gone after the trials
    plan.answer = diagnose::answer(diagnose::diagnose_record(reader.folder(), {}, options.language), options.language);
  }
  if (!plan.attempts.empty()) {
    fit_budget(RecordedRun(reader), options.budget_s, plan);
  }
  return plan;
}

Fixable fixable(const fs::path& record, const diagnose::Diagnosis& diagnosis) {
  try {
    if (suggestions_of(diagnosis, false).empty() && hints_of(diagnosis, false).empty()) {
      return {};
    }
    const std::vector<Attempt> attempts = plan_of_record(record::Reader(record), diagnosis, {}).attempts;
    return {attempts.size(), std::ranges::any_of(attempts, [&](const Attempt& attempt) {
              return attempt.finding == diagnosis.findings.front().id;
            })};
  } catch (const Error&) {
    return {};
  }
}

OptimizeResult try_fix(const FixPlan& plan, const FixOptions& options, const Progress& progress, std::stop_token stop) {
  OptimizeOptions search;
  search.command = plan.command;
  search.benchmark = true;
  search.allow_semantic = options.allow_semantic;
  search.budget_s = plan.budget_s;
  search.trials = kMostTrials;
  search.may_write = options.may_write;
  search.fresh = options.fresh;
  search.proposals = plan.proposals;
  search.edits = plan.edits;
  search.applied = plan.run_options.applied;
  search.least_steps = plan.least_steps;
  return optimize_program(search, progress, std::move(stop));
}

}  // namespace unidle::tune
