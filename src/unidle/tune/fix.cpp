#include "unidle/tune/fix.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>

#include "unidle/account/account.h"
#include "unidle/base/clock.h"
#include "unidle/base/error.h"
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
#include "unidle/tune/trials/apply_runner.h"

namespace unidle::tune {

namespace fs = std::filesystem;

namespace {

/// The first run, one trial, and a pair that verifies it.
constexpr double kLeastRuns = 4;
/// Only the budget ends the trials of the few changes.
constexpr int kMostTrials = 100;

/// The finding that a proposal of suggestions_of() is from, and the reason that follows its id.
std::pair<std::string, std::string> split_reason(const std::string& reason) {
  const std::size_t colon = reason.find(": ");
  return {reason.substr(0, colon), colon == std::string::npos ? "" : reason.substr(colon + 2)};
}

const diagnose::Finding* find(const diagnose::Diagnosis& diagnosis, const std::string& id) {
  const auto found = std::ranges::find(diagnosis.findings, id, &diagnose::Finding::id);
  return found == diagnosis.findings.end() ? nullptr : &*found;
}

std::string where_of(const diagnose::Finding& finding, const std::string& knob) {
  for (const knobs::Change& fix : finding.fixes) {
    if (fix.knob == knob && !fix.written_at.empty()) {
      return fix.written_at;
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
        attempts.push_back({knobs::change_of(knob, settings.in_force(knob), value, how), id,
                            finding == nullptr ? "" : where_of(*finding, knob)});
      }
    }
  }
  return attempts;
}

/// A fix that is not tried. `can_try`: the program would take it.
ByHand left_to_person(const diagnose::Finding& finding, const diagnose::Rule& rule, const knobs::Change& fix,
                      const std::function<bool(const knobs::Settings&)>& can_try) {
  ByHand left{finding.id, rule.title, fix.reason, fix.written_at.empty() ? finding.where.value_or("") : fix.written_at};
  if (!fix.in_code && fix.to) {
    left.setting = fix.knob + ": " + (fix.from ? fmt::format("{} -> ", *fix.from) : "") + fix.to->to_text();
    if (fix.knob_class == knobs::KnobClass::kSemantic && can_try({{fix.knob, *fix.to}})) {
      left.what = "changes what is trained, so that only --allow semantic tries it";
    }
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
      left.push_back({finding.id, rule->title, rule->proposes, finding.where.value_or("")});
    }
    for (const knobs::Change& fix : finding.fixes) {
      if (fix.in_code || !is_tried(fix)) {
        left.push_back(left_to_person(finding, *rule, fix, can_try));
      }
    }
  }
  return left;
}

/// From the start to the end of the steps that a trial has at least.
double shortest_run_s(const record::Reader& reader) {
  const account::RunData run = account::load_run(reader);
  const std::vector<record::Step> steps = account::account_of(run).timeline.steps;
  if (steps.empty()) {
    return 0;
  }
  const std::int64_t start_ns = run.meta_time(record::meta::kStartNs).value_or(steps.front().t_ns);
  const std::size_t last = std::min<std::size_t>(steps.size(), kCalibrationSteps) - 1;
  return std::max(0.0, seconds(steps[last].t_ns + steps[last].duration_ns - start_ns));
}

void check_budget(const FixPlan& plan, double budget_s) {
  const double least_s = kLeastRuns * plan.run_s;
  if (budget_s < least_s) {
    throw Error(ErrorCode::kUsage, fmt::format("--budget {:.0f}s", budget_s),
                fmt::format("is too short: {:.0f} runs are the least, and one of this program takes about {:.1f} s",
                            kLeastRuns, plan.run_s),
                fmt::format("--budget {:.0f}s leaves a margin", std::ceil(1.5 * least_s / 10) * 10));
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
  plan.command = repeatable.command;
  plan.folder = repeatable.folder;
  plan.notes = repeatable.notes;
  const ProgramPlan program = plan_from_record(reader, run, diagnosis, plan.command);
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
    plan.run_s = shortest_run_s(reader);
    check_budget(plan, options.budget_s);
  }
  return plan;
}

std::size_t count_fixable(const fs::path& record, const diagnose::Diagnosis& diagnosis) {
  try {
    const bool none = suggestions_of(diagnosis, false).empty() && hints_of(diagnosis, false).empty();
    return none ? 0 : plan_of_record(record::Reader(record), diagnosis, {}).attempts.size();
  } catch (const Error&) {
    return 0;
  }
}

OptimizeResult try_fix(const FixPlan& plan, const FixOptions& options, const Progress& progress, std::stop_token stop) {
  OptimizeOptions search;
  search.command = plan.command;
  search.benchmark = true;
  search.allow_semantic = options.allow_semantic;
  search.budget_s = options.budget_s;
  search.trials = kMostTrials;
  search.may_write = options.may_write;
  search.fresh = options.fresh;
  search.proposals = plan.proposals;
  return optimize_program(search, progress, std::move(stop));
}

}  // namespace unidle::tune
