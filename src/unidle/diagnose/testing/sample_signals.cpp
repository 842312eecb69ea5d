#include "unidle/diagnose/testing/sample_signals.h"

#include "unidle/base/error.h"

namespace unidle::diagnose::testing {

Signals healthy_cpu() {
  Signals signals;
  signals.outcome = Outcome::kCompleted;
  signals.exit_code = 0;
  signals.wall_s = 100;
  signals.time = {.startup = 5, .train = 90, .validate = 3, .checkpoint = 1, .other = 1};
  signals.step = StepShares{.input = 0.02, .transfer = 0, .compute = 0.9, .sync = 0, .optimizer = 0.05, .other = 0.03};
  signals.steps = 1000;
  signals.step_s = 0.09;
  signals.samples_per_s = 355;
  signals.syncs_per_step = 0.02;
  signals.validations = 5;
  signals.checkpoints = 2;
  signals.batch_samples = 32;
  signals.sample_s = 2e-3;
  signals.loader_busy = 0.4;
  signals.epochs = 3;
  signals.device_kind = "cpu";
  signals.device_busy = 0.9;
  signals.device_busy_how = "scripted";
  signals.gpus = 0;
  signals.cpus_allowed = 4;
  signals.cpus_used = 3.6;
  signals.cpu_bf16 = false;
  signals.model_has_convolutions = true;
  signals.model_parameters = 60'000;
  for (const auto& [knob, value] : std::map<std::string, std::string>{{"loader.workers", "2"},
                                                                      {"batch.size", "32"},
                                                                      {"batch.accumulation", "1"},
                                                                      {"precision.amp", "off"},
                                                                      {"layout.channels_last", "true"},
                                                                      {"cache.features", "off"},
                                                                      {"validation.interval", "200"},
                                                                      {"device", "cpu"}}) {
    signals.settings[knob] = {value, "naive.yaml:" + std::to_string(signals.settings.size() + 1), value};
  }
  return signals;
}

Signals healthy_gpu() {
  Signals signals = healthy_cpu();
  signals.device_kind = "cuda";
  signals.device_busy = 0.85;
  signals.gpu_memory_used = 0.75;
  signals.gpus = 1;
  signals.gpu_capability = "9.0";
  signals.settings["precision.amp"] = {"bf16", "naive.yaml:4", "bf16"};
  signals.settings["device"] = {"cuda", "naive.yaml:8", "cuda:0"};
  return signals;
}

void set_input(Signals& signals, double input) {
  StepShares& step = *signals.step;
  const double scale = (1 - input) / (1 - step.input);
  step = {.input = input,
          .transfer = step.transfer * scale,
          .compute = step.compute * scale,
          .sync = step.sync * scale,
          .optimizer = step.optimizer * scale,
          .other = step.other * scale};
}

void set_effective(Signals& signals, const std::string& knob, const std::string& value) {
  signals.settings[knob] = {value, signals.settings[knob].configured_at, value};
}

Signals waiting_cpu(double share) {
  Signals signals = healthy_cpu();
  set_effective(signals, "loader.workers", "0");
  set_effective(signals, "cache.features", "memory");
  signals.loader_busy.reset();
  signals.cpus_used = 1;
  set_input(signals, share);
  return signals;
}

Evaluation ask(std::string_view id, const Signals& signals, const Policy& policy) {
  const Rule* rule = find_rule(id);
  if (rule == nullptr) {
    throw Error(ErrorCode::kInternal, std::string(id), "unknown rule");
  }
  return rule->evaluate(make_context(signals, policy), without_start_up(policy, signals));
}

}  // namespace unidle::diagnose::testing
