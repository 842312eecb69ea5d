// `unidle optimize -- CMD`: tunes any PyTorch program through what can be changed at run time.
#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/experiment/protection.h"
#include "unidle/knobs/knob.h"
#include "unidle/knobs/reach.h"
#include "unidle/tune/advice/batch_advice.h"
#include "unidle/tune/advice/code_changes.h"
#include "unidle/tune/advice/code_patch.h"
#include "unidle/tune/optimize.h"
#include "unidle/tune/output/written.h"
#include "unidle/tune/trials/apply_runner.h"
#include "unidle/tune/trials/trial_store.h"

namespace unidle::tune {

namespace fs = std::filesystem;

namespace {

/// Foreign programs vary more between trials than the engine, and a smaller gain is not worth a code change.
constexpr double kLeastGain = 0.03;

/// Suggestions of the diagnosis are tried first; those of the hardware alone follow one by one.
std::vector<Proposal> proposals_for(const ProgramPlan& plan, const std::vector<std::string>& command) {
  Hardware hardware = this_machine();
  if (plan.device == "cpu") {
    hardware.gpus = 0;  // the program does not use one
  }
  std::vector<Proposal> proposals = propose(plan.settings, nullptr, hardware, {true});
  const bool no_workers = plan.settings.integer("loader.workers") == 0;
  std::erase_if(proposals, [&](const Proposal& proposal) {
    return !why_refused(plan, command, proposal.changes).empty() ||
           std::any_of(proposal.changes.begin(), proposal.changes.end(), [&](const auto& change) {
             const bool of_workers =
                 change.first == "loader.persistent_workers" || change.first == "loader.prefetch_factor";
             return !knobs::applies_at_run_time(change.first, change.second) ||
                    !knobs::matters_on(plan.device, change.first) || (of_workers && no_workers);
           });
  });
  if (hardware.gpus > 0 && plan.settings.in_force("compile.mode") == "off") {
    proposals.push_back({{{"compile.mode", "default"}},
                         "compiled kernels do several operations in one pass; compiling itself costs start-up",
                         0.1,
                         false});
  }
  for (Proposal& proposal : proposals) {
    proposal.safe = false;
  }
  return proposals;
}

/// Those of the given proposals that can be tried on the program as it is now, with the protection that was found.
std::vector<Proposal> possible(const OptimizeOptions& options, const ProgramPlan& plan) {
  std::vector<Proposal> proposals = *options.proposals;
  std::erase_if(proposals, [&](const Proposal& proposal) {
    const bool without_edit = edited_part(plan.edits, proposal.changes) != edited_part(options.edits, proposal.changes);
    return without_edit || !can_try(plan, options.command, proposal.changes);
  });
  return proposals;
}

/// Batch sizes that words of the command or options of the program can set.
std::vector<BatchChoice> batches_said(const ProgramPlan& plan, const std::vector<std::string>& words,
                                      bool allow_semantic) {
  knobs::Settings said = plan.settings;
  const knobs::ProgramCommand program = command_of(plan, words);
  for (const char* knob : {"batch.size", "batch.accumulation"}) {
    if (said.contains(knob) && !knobs::reaches(program, knob, said.at(knob))) {
      said.erase(knob);
    }
  }
  if (const auto rate = knobs::value_said(program, "optimizer.lr");
      rate && knobs::reaches(program, "optimizer.lr", *rate)) {
    said.set("optimizer.lr", *rate);
  }
  std::vector<BatchChoice> found = batch_choices(said, allow_semantic);
  std::erase_if(found, [&](const BatchChoice& choice) { return !why_refused(plan, words, choice.changes).empty(); });
  return found.size() > 1 ? found : std::vector<BatchChoice>{};
}

ApplyRunner::Options runner_options(const OptimizeOptions& options, const fs::path& scratch,
                                    experiment::Protection protection) {
  return {.command = options.command,
          .scratch = scratch,
          .folder = fs::current_path(),
          .protection = protection,
          .allow_semantic = options.allow_semantic,
          .budget_s = options.budget_s,
          .edits = options.edits,
          .applied = options.applied,
          .least_steps = options.least_steps};
}

/// Calibrates with the best protection under which the program works. If it fails under each, reports the first
/// failure: protection is then not the cause.
std::unique_ptr<ApplyRunner> calibrated(const OptimizeOptions& options, const fs::path& scratch, ProgramResult& program,
                                        std::stop_token stop) {
  const experiment::ProtectionOptions found = experiment::ways_to_protect(fs::current_path(), options.command, scratch);
  program.note = found.lacking;
  std::optional<Error> first;
  for (const experiment::Protection protection : found.ways) {
    need_permission(found, protection, options.may_write);
    auto runner = std::make_unique<ApplyRunner>(
        runner_options(options, scratch / std::string(to_string(protection)), protection));
    try {
      program.plan = runner->calibrate(stop);
      return runner;
    } catch (const Error& failure) {
      first = first ? first : failure;
      if (failure.code() != ErrorCode::kChild || runner->too_slow()) {
        break;
      }
      program.note += (program.note.empty() ? "" : "; ") + fmt::format("with protection '{}' the program fails: {}",
                                                                       to_string(protection), failure.message());
    }
  }
  throw *first;
}

/// What is run: the command, and what is applied to it.
std::vector<std::string> command_and_applied(const OptimizeOptions& options) {
  std::vector<std::string> words = options.command;
  for (const auto& [knob, value] : options.applied) {
    words.push_back("--apply " + knobs::pair_key(knob, value));
  }
  return words;
}

/// Resumes a killed search, or starts a new one.
std::unique_ptr<ApplyRunner> runner_for(const OptimizeOptions& options, const fs::path& scratch, TrialStore& store,
                                        ProgramResult& program, std::stop_token stop) {
  const auto known = options.fresh ? std::nullopt : store.plan();
  if (!known || (!is_enforced(known->protection) && !options.may_write)) {
    store.clear();
    auto runner = calibrated(options, scratch, program, stop);
    store.keep(program.plan);
    return runner;
  }
  auto runner = std::make_unique<ApplyRunner>(runner_options(options, scratch / "trials", known->protection));
  program.plan = runner->resume(*known);
  return runner;
}

/// The command that makes the changes but for those of the program's lines. Empty when it is the unchanged one.
std::string command_with(const std::vector<std::string>& command, const ProgramPlan& plan,
                         const knobs::Settings& changes) {
  const std::vector<std::string> edited = edited_command(plan.edits, changes, command);
  const knobs::Settings unedited = unedited_part(plan.edits, changes);
  return unedited.empty() && edited == command ? "" : knobs::run_command(command_of(plan, edited), unedited);
}

/// The command that runs with the changes, and the lines to edit before.
std::string how_to_run(const std::vector<std::string>& command, const ProgramPlan& plan,
                       const knobs::Settings& changes) {
  std::string text = command_with(command, plan, changes);
  for (const auto& [knob, value] : edited_part(plan.edits, changes)) {
    if (const Edit& edit = plan.edits.at(knob); !edit.lines.empty()) {
      text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", edit.words, edit.where());
    }
  }
  return text;
}

/// The command that makes the changes, if they need no edits, and what to write in the program.
void say_how(const OptimizeOptions& options, const std::vector<knobs::Change>& changes, const knobs::Settings& wanted,
             ProgramResult& program) {
  const ProgramPlan& plan = program.plan;
  program.run = command_with(options.command, plan, wanted);
  program.code = code_changes(changes, plan.places, plan.device);
  const knobs::Settings at_run_time = reach_of(plan, options.command, wanted).at_run_time;
  std::erase_if(program.code, [&](const CodeChange& change) { return !at_run_time.contains(change.knob); });
  for (const auto& [knob, value] : edited_part(plan.edits, wanted)) {
    if (const Edit& edit = plan.edits.at(knob); !edit.lines.empty()) {
      program.code.push_back({.knob = knob, .where = edit.where(), .code = edit.words, .lines = edit.lines});
    }
  }
  program.patch = code_patch(program.code, fs::current_path());
}

}  // namespace

OptimizeResult optimize_program(const OptimizeOptions& options, const Progress& progress, std::stop_token stop) {
  TemporaryFolder::sweep("unidle-optimize");
  const TemporaryFolder scratch("unidle-optimize");
  const std::int64_t start = system_clock().now_ns();
  OptimizeResult result;
  ProgramResult& program = result.program.emplace();
  program.command = options.command;
  TrialStore store(home_folder() / "searches",
                   search_identity(command_and_applied(options), fs::current_path(), this_machine()));
  const std::unique_ptr<ApplyRunner> runner = runner_for(options, scratch.path(), store, program, stop);
  ResumingRunner resuming(*runner, store);

  TunerOptions tuning;
  tuning.trials = options.trials;
  tuning.only = options.only;
  tuning.budget_s = options.budget_s;
  tuning.spent_s = seconds(system_clock().now_ns() - start);
  tuning.least_gain = kLeastGain;
  tuning.verify_fastest = true;
  tuning.follow_diagnoses = !options.proposals;
  if (!options.proposals) {
    tuning.batches = batches_said(program.plan, options.command, options.allow_semantic);
  }
  tuning.of_program = true;
  tuning.expected_s = runner->has_baseline() ? 0 : program.plan.expected_s;
  tuning.say = progress.say;
  if (!options.proposals && tuning.batches.empty()) {
    if (std::string advice = batch_advice(program.plan.settings, program.plan.places, fs::current_path());
        !advice.empty()) {
      result.notes.push_back(std::move(advice));
    }
  }
  std::vector<Proposal> proposals =
      options.proposals ? possible(options, program.plan) : proposals_for(program.plan, options.command);
  Tuner tuner(resuming, system_clock(), program.plan.settings, std::move(proposals), tuning, progress.on_trial);
  result.outcome = tuner.run(stop);
  if (resuming.resumed() > 0) {
    result.notes.push_back(resumed_note(resuming.resumed()));
  }
  if (!result.outcome->interrupted) {
    store.clear();
  } else if (!result.outcome->best.empty()) {
    result.notes.push_back(fmt::format("what was best so far, unverified: {}",
                                       how_to_run(options.command, program.plan, result.outcome->best)));
  }
  result.changes = result.outcome->changes;
  knobs::Settings wanted;
  for (const knobs::Change& change : result.changes) {
    wanted.set(change.knob, *change.to);
  }
  if (!wanted.empty()) {
    say_how(options, result.changes, wanted, program);
  }
  const auto patch = program.plan.places.find("replacement");
  if (patch != program.plan.places.end() && !options.proposals) {  // else the findings decide what is tried
    result.notes.push_back(
        fmt::format("unidle.data has a source that gives the samples of this data set; not measured, to review:\n{}",
                    patch->second));
  }
  write_record(result, options.proposals ? "fix" : "optimize");
  return result;
}

}  // namespace unidle::tune
