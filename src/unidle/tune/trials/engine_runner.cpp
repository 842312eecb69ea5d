#include "unidle/tune/trials/engine_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "unidle/account/account.h"
#include "unidle/account/knob_readings.h"
#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/log.h"
#include "unidle/base/numbers.h"
#include "unidle/base/stats.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/experiment/last_line_of.h"
#include "unidle/observe/observe.h"
#include "unidle/tune/advice/suggestions.h"
#include "unidle/tune/trials/memory_margin.h"
#include "unidle/tune/trials/printed.h"
#include "unidle/tune/trials/trial_record.h"

namespace unidle::tune {

namespace {

/// Time limits of the calibration, including start-up; the next one is used only when no step was finished.
constexpr std::array<double, 3> kCalibrationSeconds = {6, 25, 90};
/// A longer epoch cannot be repeated in every trial.
constexpr double kLongestEpochSeconds = 5;
/// More samples than any calibration processes.
constexpr long long kEndless = 1'000'000'000;
/// Longest start-up of program, model and data.
constexpr double kStartupAllowance = 60;
/// For a trial with a larger batch: the first step is warm-up.
constexpr long long kFewestSteps = 3;

observe::Result observed(std::vector<std::string> argv, const std::filesystem::path& record, double timeout_s,
                         std::stop_token stop) {
  observe::Options options;
  options.argv = std::move(argv);
  options.record = record;
  options.quiet = true;
  options.forward_signals = false;  // a stop comes through the token
  options.timeout_s = timeout_s;
  options.stop = std::move(stop);
  return observe::run(options);
}

/// Derives the length of an epoch from the positions of validation metrics.
std::optional<double> epoch_of(const account::RunData& run, long long steps_end, double interval) {
  std::optional<double> epoch;
  for (const auto& [name, values] : run.metrics) {
    if (name == "loss") {
      continue;
    }
    long long count = 0;
    for (const record::Metric& metric : values) {
      // The final validation of a run says nothing about epochs.
      if (metric.samples > 0 && metric.samples < steps_end) {
        ++count;
        epoch = static_cast<double>(metric.samples) / (static_cast<double>(count) * interval);
      }
    }
  }
  return epoch;
}

Calibration read_calibration(const account::RunData& run) {
  Calibration calibration;
  const account::Account account = account::account_of(run);
  const account::Steps steps = account.timeline.steps;
  if (steps.size() < 2) {
    return calibration;
  }
  long long end = 0;
  for (const record::Step& step : steps) {
    end += step.samples;
  }
  const auto set = parse_number<double>(account::knob_readings(run)["validation.interval"].effective.value_or(""));
  const double interval = set && *set > 0 ? *set : 1;
  calibration.rate = account.rates.training.value_or(0);
  calibration.step_samples = std::max<long long>(1, steps.back().samples);
  calibration.epoch_samples = epoch_of(run, end, interval);
  return calibration;
}

ErrorCode code_of(const ExitStatus& status) {
  if (status.signal == 0 && status.code == 2) {
    return ErrorCode::kInput;
  }
  return status.signal == 0 && status.code == 3 ? ErrorCode::kMissing : ErrorCode::kChild;
}

double validation_share(const diagnose::Diagnosis& diagnosis) {
  const double loop = diagnosis.time.train + diagnosis.time.validate + diagnosis.time.checkpoint;
  return loop > 0 ? diagnosis.time.validate / loop : 0;
}

}  // namespace

TrialPlan plan_trials(const Calibration& calibration, double target_s) {
  const auto whole_steps = [&](double samples) {
    const auto steps = std::ceil(samples / static_cast<double>(calibration.step_samples));
    return static_cast<long long>(std::max(steps, 1.0)) * calibration.step_samples;
  };
  TrialPlan plan;
  plan.epoch_samples = calibration.epoch_samples;
  const double wanted = std::max(target_s * calibration.rate, 4.0 * static_cast<double>(calibration.step_samples));
  const double epoch = calibration.epoch_samples.value_or(0);
  plan.whole_epochs = epoch > 0 && epoch <= kLongestEpochSeconds * calibration.rate;
  if (plan.whole_epochs) {
    const double epochs = std::max(1.0, std::round(wanted / epoch) - 1);
    // One sample more than an epoch excludes the validation after it as well.
    plan.warmup_samples = static_cast<long long>(std::ceil(epoch)) + 1;
    plan.samples = whole_steps(epoch * (epochs + 1));
  } else {
    plan.samples = whole_steps(wanted);
    plan.warmup_samples = std::min(whole_steps(wanted / 10), plan.samples / 2);
  }
  plan.expected_s = calibration.rate > 0 ? static_cast<double>(plan.samples) / calibration.rate : target_s;
  return plan;
}

TrialPlan in_steps_of(TrialPlan plan, long long step_samples) {
  const long long planned = plan.samples;
  const long long least = std::max(planned, kFewestSteps * step_samples);
  plan.samples = (least + step_samples - 1) / step_samples * step_samples;
  plan.expected_s *= static_cast<double>(plan.samples) / static_cast<double>(planned);
  return plan;
}

TrialPlan EngineRunner::plan_for(const knobs::Settings& changes) const {
  const long long step = knobs::effective_batch(knobs::overlaid(options_.settings, changes));
  return step == knobs::effective_batch(options_.settings) ? plan_ : in_steps_of(plan_, step);
}

std::vector<std::string> EngineRunner::arguments(const knobs::Settings& changes, long long samples,
                                                 long long warmup) const {
  std::vector<std::string> argv = {options_.program.string(), options_.config.string()};
  for (const auto& [knob, value] : changes) {
    argv.push_back(knobs::pair_key(knob, value));
  }
  argv.push_back(fmt::format("train.samples={}", samples));
  argv.push_back(fmt::format("train.warmup_samples={}", warmup));
  // Trials do not touch the user's checkpoints.
  argv.push_back("checkpoint.interval=0");
  argv.push_back("checkpoint.folder=" + (options_.scratch / "checkpoints").string());
  argv.insert(argv.end(), {"--format", "json", "-q"});
  return argv;
}

const TrialPlan& EngineRunner::calibrate(std::stop_token stop) {
  int attempt = 0;
  for (const double seconds : kCalibrationSeconds) {
    const double limit_s = std::min(seconds, options_.budget_s);
    const std::filesystem::path folder = options_.scratch / fmt::format("calibration-{}", ++attempt);
    const observe::Result result = observed(arguments({}, kEndless, 1), folder, limit_s, stop);
    if (stop.stop_requested()) {
      throw Error(ErrorCode::kCancelled, "optimize", "stopped before the first trial; nothing was written");
    }
    const Calibration calibration = read_calibration(account::load_run(folder));
    if (calibration.rate > 0) {
      plan_ = plan_trials(calibration, options_.target_s);
      return plan_;
    }
    if (!result.timed_out) {
      throw Error(code_of(result.status), options_.config.string(),
                  experiment::last_line_of(result.err_tail, result.out_tail));
    }
  }
  throw Error(ErrorCode::kChild, options_.config.string(), "takes minutes for a few steps",
              "measure it with a smaller model or a smaller batch");
}

TrialResult EngineRunner::run(const knobs::Settings& changes, double limit_s, std::stop_token stop) {
  const std::filesystem::path folder = options_.scratch / fmt::format("trial-{}", ++trials_);
  const std::int64_t start = system_clock().now_ns();
  const TrialPlan plan = plan_for(changes);
  limit_s = std::min(limit_s, kStartupAllowance + kHopeless * plan.expected_s);
  const observe::Result run = observed(arguments(changes, plan.samples, plan.warmup_samples), folder, limit_s, stop);
  TrialResult result;
  result.seconds = seconds(system_clock().now_ns() - start);
  result.interrupted = stop.stop_requested();
  if (result.interrupted) {
    return result;
  }
  if (run.timed_out || !run.status.ok()) {
    result.problem = run.timed_out ? fmt::format("took longer than {:.0f} s", limit_s)
                                   : experiment::last_line_of(run.err_tail, run.out_tail);
    return result;
  }
  read_summary(run.out_tail, plan.whole_epochs, result);
  try {
    const account::Account account = account::account_of(account::load_run(folder));
    result.losses = losses_of(account);
    result.read_loss(losses_);
    const diagnose::Diagnosis diagnosis = diagnose::diagnose_record(folder);
    result.suggestions = suggestions_of(diagnosis, options_.allow_semantic);
    refuse_full_memory(diagnosis, changes, result);
    result.validation_share = validation_share(diagnosis);
    result.others_cpus = account.cpus.others;
    result.own_cpus = account.cpus.own;
  } catch (const Error& failure) {
    // The trial's figures are valid without a diagnosis; only its suggestions are missing.
    spdlog::warn("trial {}: no diagnosis: {}", trials_, failure.what());
  }
  return result;
}

}  // namespace unidle::tune
