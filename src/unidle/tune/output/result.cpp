#include "unidle/tune/output/result.h"

#include <nlohmann/json.hpp>

#include "unidle/base/secrets.h"
#include "unidle/knobs/knob.h"

namespace unidle::tune {

using nlohmann::json;

namespace {

json optional_number(const std::optional<double>& value) { return value ? json(*value) : json(); }

json to_json(const ProgramResult& program) {
  json code = json::array();
  for (const CodeChange& change : program.code) {
    code.push_back(
        {{"knob", change.knob}, {"where", change.where.empty() ? json() : json(change.where)}, {"code", change.code}});
  }
  return {{"command", mask_secrets(program.command)},
          {"device", program.plan.device},
          {"steps", program.plan.steps},
          {"trial_limit_s", program.plan.limit_s},
          {"settings", program.plan.settings},
          {"working_folder", is_isolated(program.plan.protection) ? "copy" : "in-place"},
          {"protection", to_string(program.plan.protection)},
          {"note", program.note},
          {"run", program.run.empty() ? json() : json(program.run)},
          {"code", code},
          {"patch", program.patch}};
}

}  // namespace

json to_json(const knobs::Change& change) {
  return {{"knob", change.knob},        {"from", change.from ? change.from->to_text() : ""},
          {"to", change.to->to_text()}, {"class", knobs::to_string(change.knob_class)},
          {"reason", change.reason},    {"gain", optional_number(change.gain)},
          {"depends", change.depends},  {"paths", change.paths.empty() ? json{change.knob} : json(change.paths)}};
}

json to_json(const LoggedTrial& trial) {
  const TrialResult& result = trial.result;
  return {{"trial", trial.index},
          {"stage", trial.stage},
          {"knobs", trial.changes},
          {"ok", result.ok},
          {"problem", result.problem},
          {"samples_per_s", result.rate},
          {"step_samples_per_s", optional_number(result.step_rate)},
          {"loss", optional_number(result.loss)},
          {"metric", result.metrics},
          {"effective", result.effective},
          {"refused", result.refused},
          {"loss_error", result.loss ? json(result.loss_error) : json()},
          {"seconds", result.seconds},
          {"others_cpus", optional_number(result.others_cpus)},
          {"verdict", trial.verdict},
          {"why", trial.why}};
}

json to_json(const Verification& verification) {
  return {{"baseline", verification.baseline},
          {"winner", verification.winner},
          {"baseline_spread", standard_deviation(verification.baseline)},
          {"winner_spread", standard_deviation(verification.winner)},
          {"ratio", verification.ratio},
          {"interval", {verification.interval.low, verification.interval.high}},
          {"confidence", 0.95},
          {"shown", verification.shown},
          {"loss_parity", verification.compared ? json(verification.parity.held) : json()},
          {"why", verification.parity.why}};
}

json to_json(const OptimizeResult& result) {
  json document = {{"schema", "unidle.optimize/1"},
                   {"config", result.config},
                   {"measured", result.outcome.has_value()},
                   {"changes", json::array()},
                   {"trials", json::array()},
                   {"verification", nullptr},
                   {"not_taken", json::array()},
                   {"plan", nullptr},
                   {"program", nullptr},
                   {"best", json::object()},
                   {"framework", result.framework},
                   {"left", result.left},
                   {"notes", result.notes},
                   {"interrupted", false},
                   {"conclusion", ""},
                   {"diff", result.diff},
                   {"record", result.record.empty() ? json() : json(result.record.string())}};
  for (const knobs::Change& change : result.changes) {
    document["changes"].push_back(to_json(change));
  }
  if (result.plan) {
    document["plan"] = {{"samples", result.plan->samples},
                        {"warmup_samples", result.plan->warmup_samples},
                        {"epoch_samples", optional_number(result.plan->epoch_samples)},
                        {"validation_counted", result.plan->whole_epochs}};
  }
  if (result.program) {
    document["program"] = to_json(*result.program);
  }
  if (result.outcome) {
    document["best"] = result.outcome->best;
    for (const LoggedTrial& trial : result.outcome->trials) {
      document["trials"].push_back(to_json(trial));
    }
    if (result.outcome->verification) {
      document["verification"] = to_json(*result.outcome->verification);
    }
    document["not_taken"] = result.outcome->not_taken;
    document["interrupted"] = result.outcome->interrupted;
    document["conclusion"] = result.outcome->conclusion;
  }
  return document;
}

}  // namespace unidle::tune
