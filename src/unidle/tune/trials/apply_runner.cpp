#include "unidle/tune/trials/apply_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/account/account.h"
#include "unidle/account/epochs.h"
#include "unidle/account/program_options.h"
#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/base/units.h"
#include "unidle/cache/store.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/experiment/last_line_of.h"
#include "unidle/knobs/knob.h"
#include "unidle/knobs/reach.h"
#include "unidle/observe/observe.h"
#include "unidle/record/note_types.h"
#include "unidle/tune/advice/suggestions.h"
#include "unidle/tune/trials/applied.h"
#include "unidle/tune/trials/memory_margin.h"
#include "unidle/tune/trials/memory_watch.h"

namespace unidle::tune {

namespace fs = std::filesystem;

namespace {

constexpr long long kLeastTrialSteps = 30;
constexpr long long kMostTrialSteps = 100'000;
/// For a trial with larger batches: a quarter of the steps is warm-up.
constexpr long long kLeastLargeSteps = 16;
/// This many trials must fit into the budget, otherwise trials get shorter: a few for the search, and three pairs.
constexpr double kTrialsInBudget = 14;
constexpr double kShortestTarget_s = 3;
constexpr double kStartupAllowance_s = 20;
constexpr double kEpochsInTrial = 3;
constexpr double kLongestForEpochs_s = 20;
/// With fewer runs in the budget than this, the calibration has to serve as the baseline.
constexpr double kScarce = 9;
/// That needs as much training.
constexpr double kShortestTrial_s = 1;
/// The calibration may take this share of the budget, but at least half a minute.
constexpr double kCalibrationShare = 0.5;

std::map<std::string, std::string> places_in(const record::Reader& reader, const account::RunData& run,
                                             const diagnose::Diagnosis& diagnosis) {
  std::map<std::string, std::string> places;
  nlohmann::json training_loader;
  std::int64_t most = -1;
  const std::vector<record::Note>& notes = run.notes;
  record::each_note<record::NoteType::kLoader>(notes, [&](const auto& note) {
    const std::int64_t batches = note.whole("batches").value_or(0);
    if (note.text("use") == "train" && batches > most) {
      most = batches;
      training_loader = note.value("id");
      places["loader"] = note.text("where");
      places["made_with"] = note.text("made_with");
      places["dataset"] = note.text("dataset_where");
    }
  });
  record::each_note<record::NoteType::kValidation>(
      notes, [&](const auto& note) { places["validation"] = note.text("where"); });
  record::each_note<record::NoteType::kOptimizer>(notes, [&](const auto& note) {
    places["optimizer"] = note.text("where");
    places["zero_grad"] = note.text("zero_grad_where");
  });
  record::each_note<record::NoteType::kModel>(notes,
                                              [&](const auto& note) { places["model"] = note.text("training_where"); });
  places["function"] = diagnose::cacheable_function(reader);
  if (diagnosis.step && diagnosis.step->input >= diagnose::Policy{}.warning_share) {
    record::each_note<record::NoteType::kSource>(notes, [&](const auto& note) {
      if (note.value("id") == training_loader) {
        places["replacement"] = note.text("patch");
      }
    });
  }
  std::erase_if(places, [](const auto& entry) { return entry.second.empty(); });
  return places;
}

}  // namespace

double epoch_steps(const account::RunData& run, const knobs::Settings& settings) {
  const long long batch = settings.integer("batch.size");
  const long long accumulated = std::max(1LL, settings.integer("batch.accumulation"));
  const auto samples = account::reported_samples_per_epoch(run);
  if (!samples || batch <= 0) {
    return 0;
  }
  return *samples / (static_cast<double>(batch) * static_cast<double>(accumulated));
}

knobs::Reach reach_of(const ProgramPlan& plan, const std::vector<std::string>& command,
                      const knobs::Settings& changes) {
  return knobs::reach(command_of(plan, edited_command(plan.edits, changes, command)),
                      unedited_part(plan.edits, changes));
}

knobs::ProgramCommand command_of(const ProgramPlan& plan, std::vector<std::string> words) {
  return {std::move(words), plan.settings, plan.omitted, {{}, {}, plan.applied}};
}

std::string why_refused(const ProgramPlan& plan, const std::vector<std::string>& command,
                        const knobs::Settings& changes) {
  return knobs::why_refused(reach_of(plan, command, changes).command, plan.choices);
}

bool can_try(const ProgramPlan& plan, const std::vector<std::string>& command, const knobs::Settings& changes) {
  const knobs::ProgramCommand program = command_of(plan, command);
  const knobs::Settings unedited = unedited_part(plan.edits, changes);
  return why_refused(plan, command, changes).empty() && std::ranges::all_of(unedited, [&](const auto& change) {
           const bool by_word = knobs::reach(program, {change}).at_run_time.empty();
           return knobs::reaches(program, change.first, change.second) &&
                  (by_word || knobs::matters_on(plan.device, change.first));
         });
}

ProgramPlan plan_from_record(const record::Reader& reader, const account::RunData& run,
                             const diagnose::Diagnosis& diagnosis, const std::vector<std::string>& command) {
  ProgramPlan plan;
  plan.settings = known_settings(effective_settings(run));
  plan.places = places_in(reader, run, diagnosis);
  plan.omitted = account::omitted_options(run, command, plan.settings);
  plan.choices = account::option_choices(run);
  plan.device = diagnosis.device.kind;
  return plan;
}

long long steps_of_trial(double step_s, double target_s, double epoch_steps) {
  double wanted = step_s > 0 ? std::ceil(target_s / step_s) : 0;
  if (const double epochs = std::ceil(epoch_steps * kEpochsInTrial); epochs * step_s <= kLongestForEpochs_s) {
    wanted = std::max(wanted, epochs);
  }
  return std::clamp(static_cast<long long>(std::min(wanted, 1e9)), kLeastTrialSteps, kMostTrialSteps);
}

long long steps_with(const ProgramPlan& plan, const knobs::Settings& changes) {
  const auto samples_of_step = [](const knobs::Settings& settings) {
    return std::max(1LL, settings.integer("batch.size")) * std::max(1LL, settings.integer("batch.accumulation"));
  };
  const long long before = samples_of_step(plan.settings);
  const long long after = samples_of_step(knobs::overlaid(plan.settings, changes));
  return before == after
             ? plan.steps
             : std::clamp(plan.steps * before / after, std::min(plan.steps, kLeastLargeSteps), kMostTrialSteps);
}

struct ApplyRunner::Ended {
  observe::Result result;
  double seconds = 0;
  bool out_of_memory = false;  // ended because the machine ran out of memory
};

ApplyRunner::Ended ApplyRunner::start(const knobs::Settings& changes, const Length& length, std::stop_token stop) {
  const std::string name = fmt::format("trial-{}", trials_++);
  const knobs::Reach reached = reach_of(plan_, options_.command, changes);
  const std::vector<experiment::EditedFile> edited = edited_files(plan_.edits, changes, options_.folder);
  observe::Options run;
  run.argv = reached.command;
  run.record = options_.scratch / name;
  knobs::Settings applied = options_.applied;
  std::ranges::for_each(changes, [&](const auto& change) { applied.erase(change.first); });
  applied.set(reached.at_run_time);
  run.environment["UNIDLE_APPLY"] = knobs::encode_apply(applied);
  if (applied.contains("cache.features")) {  // on disk, where the recorded run kept them
    run.environment["UNIDLE_CACHE"] = fs::absolute(cache::default_folder()).string();
  }
  run.environment["UNIDLE_MAX_STEPS"] = std::to_string(length.steps);
  run.environment["UNIDLE_LONGEST"] = length.longest_first ? "1" : "";
  run.quiet = true;
  run.forward_signals = false;  // a stop comes through the token
  run.timeout_s = length.limit_s;
  std::stop_source ending;
  const std::stop_callback stopped(stop, [&ending] { ending.request_stop(); });
  run.stop = ending.get_token();
  const fs::path own = options_.scratch / (name + "-folder");
  protect(run, options_.protection, options_.folder, options_.command, own);
  edit_for_trial(run, options_.protection, options_.folder, own, edited);
  const std::int64_t begin = system_clock().now_ns();
  Ended ended;
  {
    const MemoryWatch watch(ending);
    ended.result = observe::run(run);
    ended.out_of_memory = watch.tripped();
  }
  ended.seconds = seconds(system_clock().now_ns() - begin);
  remove_tree(own);
  return ended;
}

const ProgramPlan& ApplyRunner::calibrate(std::stop_token stop) {
  const double limit_s = std::max(30.0, options_.budget_s * kCalibrationShare);
  const long long first_steps = std::max(kCalibrationSteps, options_.least_steps);
  const Ended ended = start({}, {first_steps, limit_s}, stop);
  if (stop.stop_requested()) {
    throw Error(ErrorCode::kCancelled, "trials", "stopped before the first trial");
  }
  const std::string& program = options_.command.front();
  if (!ended.result.timed_out && !ended.result.status.ok()) {
    throw Error(ErrorCode::kChild, program, experiment::last_line_of(ended.result.err_tail, ended.result.out_tail),
                "the program must run as it is, without a terminal");
  }
  const record::Reader reader(ended.result.record);
  const account::RunData run = account::load_run(reader);
  const account::Account account = account::account_of(run);
  const std::vector<record::Step>& steps = account.timeline.steps;
  if (steps.size() < kLeastSteps) {
    const bool late = too_slow_ = ended.result.timed_out;
    throw Error(late ? ErrorCode::kChild : ErrorCode::kInput, program,
                fmt::format("only {} training steps of PyTorch were seen in {:.0f} s", steps.size(), ended.seconds),
                late ? "give more with --budget" : "a trial needs at least 8; unidle run shows what can be seen of it");
  }
  const std::int64_t end_ns = steps.back().t_ns + steps.back().duration_ns;
  plan_ = plan_from_record(reader, run, diagnose::diagnose_record(ended.result.record), options_.command);
  plan_.step_s = account.rates.total_steps_per_s ? 1 / *account.rates.total_steps_per_s : 0;
  plan_.startup_s = std::max(0.0, ended.seconds - seconds(end_ns - steps.front().t_ns));
  const double target_s =
      std::clamp(options_.budget_s / kTrialsInBudget - plan_.startup_s, kShortestTarget_s, options_.target_s);
  plan_.steps =
      std::max(steps_of_trial(plan_.step_s, target_s, epoch_steps(run, plan_.settings)), options_.least_steps);
  const double trained_s = ended.seconds - plan_.startup_s;
  const bool scarce = options_.budget_s < kScarce * ended.seconds && trained_s >= kShortestTrial_s;
  if (scarce) {
    plan_.steps = first_steps;
  }
  plan_.expected_s = plan_.startup_s + static_cast<double>(plan_.steps) * plan_.step_s;
  plan_.limit_s = kStartupAllowance_s + kHopeless * plan_.expected_s;
  plan_.protection = options_.protection;
  plan_.edits = is_isolated(plan_.protection) ? options_.edits : without_lines(options_.edits);
  plan_.applied = options_.applied;
  if (scarce) {
    baseline_.emplace();
    baseline_->seconds = ended.seconds;
    read(ended.result.record, {}, *baseline_);
  }
  return plan_;
}

const ProgramPlan& ApplyRunner::resume(const ProgramPlan& plan) {
  plan_ = plan;
  plan_.edits = is_isolated(plan_.protection) ? options_.edits : without_lines(options_.edits);
  plan_.applied = options_.applied;
  return plan_;
}

void ApplyRunner::read(const fs::path& record, const knobs::Settings& changes, TrialResult& result) {
  const record::Reader reader(record);
  if (!read_trial(account::load_run(reader), losses_, result)) {
    return;
  }
  for (const auto& [knob, applied] : applied_settings(reader, reach_of(plan_, options_.command, changes).at_run_time)) {
    if (!applied.taken) {
      result.refused[knob] = applied.why;
    }
  }
  try {
    const diagnose::Diagnosis diagnosis = diagnose::diagnose_record(record);
    result.suggestions = suggestions_of(diagnosis, options_.allow_semantic);
    if (auto rarer = rarer_validation(diagnosis, known_settings(result.effective))) {
      result.suggestions.push_back(std::move(*rarer));
    }
    refuse_full_memory(diagnosis, changes, result);
  } catch (const Error& failure) {
    spdlog::warn("trial {}: no diagnosis: {}", trials_, failure.what());
  }
  std::erase_if(result.suggestions,
                [&](const Proposal& suggestion) { return !can_try(plan_, options_.command, suggestion.changes); });
}

TrialResult ApplyRunner::run(const knobs::Settings& changes, double limit_s, std::stop_token stop) {
  if (baseline_ && changes.empty()) {
    const TrialResult known = std::move(*baseline_);
    baseline_.reset();
    return known;
  }
  return run(changes, {steps_with(plan_, changes), std::min(plan_.limit_s, limit_s)}, stop);
}

std::optional<TrialResult> ApplyRunner::run_longest(const knobs::Settings& changes, double limit_s,
                                                    std::stop_token stop) {
  return run(changes, {kLongestSteps, std::min(plan_.limit_s, limit_s), true}, stop);
}

TrialResult ApplyRunner::run(const knobs::Settings& changes, const Length& length, std::stop_token stop) {
  TrialResult result;
  result.problem = why_refused(plan_, options_.command, changes);
  if (!result.problem.empty()) {
    return result;
  }
  try {
    const Ended ended = start(changes, length, stop);
    result.seconds = ended.seconds;
    result.interrupted = stop.stop_requested();
    if (result.interrupted) {
      return result;
    }
    if (ended.out_of_memory) {
      result.problem = fmt::format("left less than {} of memory and was ended", format_bytes(memory_to_keep()));
    } else if (ended.result.timed_out) {
      result.problem = fmt::format("took longer than {:.0f} s and was ended", length.limit_s);
    } else if (!ended.result.status.ok()) {
      result.problem = experiment::last_line_of(ended.result.err_tail, ended.result.out_tail);
    } else {
      read(ended.result.record, changes, result);
    }
  } catch (const Error& failure) {  // no space for the copy or record: only this trial is lost
    result.problem = failure.what();
  }
  return result;
}

}  // namespace unidle::tune
