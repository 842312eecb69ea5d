// Writes the scripted records into the folder given as the only argument: naive, tuned, gpu, optimise, nasty, empty,
// short and cut.
#include <cstdio>
#include <filesystem>
#include <limits>

#include "unidle/base/error.h"
#include "unidle/report/testing/scripted_run.h"
#include "unidle/tune/output/result.h"

namespace {

using unidle::account::RunData;
namespace knobs = unidle::knobs;
namespace testing = unidle::report::testing;
namespace tune = unidle::tune;

RunData optimise() {
  RunData run;
  run.meta["outcome"] = "completed";
  run.meta["start_ns"] = 0;
  run.meta["end_ns"] = 90'000'000'000;
  const auto add_change = [&](const char* knob, knobs::Value from, knobs::Value to, const char* reason, double gain) {
    knobs::Change change = knobs::change_of(knob, std::move(from), std::move(to), reason);
    change.gain = gain;
    run.meta["changes"].push_back(tune::to_json(change));
  };
  add_change("loader.workers", 0, 4,
             "the training process prepares every batch itself while the device waits; this job may use 8 CPUs", 2.42);
  add_change("precision.amp", "off", "bf16", "this CPU has units for bf16", 1.31);
  add_change("optimizer.fused", false, true,
             "one pass over the parameters instead of several operations for each tensor", 1.04);
  const auto add_trial = [&](knobs::Settings changes, double rate, const char* verdict) {
    tune::LoggedTrial trial;
    trial.index = static_cast<int>(run.meta["trials"].size()) + 1;
    trial.stage = changes.empty() ? "baseline" : "step";
    trial.why = changes.empty() ? "" : knobs::describe(changes) + "; median of 3 turns; 1.021x of the best so far";
    trial.changes = std::move(changes);
    trial.verdict = verdict;
    trial.result.ok = true;
    trial.result.rate = rate;
    run.meta["trials"].push_back(tune::to_json(trial));
  };
  add_trial({}, 26.6, "baseline");
  add_trial({{"loader.workers", 4}}, 64.4, "kept");
  add_trial({{"loader.workers", 8}}, 63.9, "no gain");
  add_trial({{"loader.workers", 4}, {"precision.amp", "bf16"}}, 84.4, "kept");
  tune::Verification verification;
  verification.baseline = {26.5, 26.6, 26.7};
  verification.winner = {105.4, 105.9, 106.3};
  verification.ratio = 3.98;
  verification.interval = {3.95, 4.01};
  verification.shown = verification.compared = true;
  run.meta["verification"] = tune::to_json(verification);
  return run;
}

RunData nasty() {
  testing::Script script = testing::naive_script();
  script.steps = 40;
  script.validate_every = 10;
  RunData run = testing::scripted_run(script);
  const std::string evil = "</script><img src=x onerror=alert(1)>\"'&";
  run.meta["command"] = {"python", evil};
  run.meta["outcome"] = evil;
  run.meta["host"]["cpu_model"] = evil;
  run.meta["gpus"] = nlohmann::json::array({{{"name", evil}}});
  run.meta["problems"] = {evil};
  run.meta["changes"] = nlohmann::json::array({{{"knob", evil}, {"from", evil}, {"to", evil}, {"reason", evil}}});
  run.meta["trials"] = nlohmann::json::array({{{evil, evil}}});
  run.settings.push_back({evil, evil, "configured", evil});
  run.metrics[evil].push_back({evil, run.steps.back().t_ns, 1, 10, 1.5});
  run.series.push_back(
      {{"gpu.utilisation", evil, evil}, {{run.steps.front().t_ns, 0.5}, {run.steps.back().t_ns, 0.6}}});
  run.steps[7].loss = std::numeric_limits<double>::quiet_NaN();
  run.steps[9].loss = std::numeric_limits<double>::infinity();
  return run;
}

RunData with_stacks(RunData run) {
  run.notes.push_back({run.steps.back().t_ns,
                       1,
                       {{"type", "stacks"},
                        {"role", "train"},
                        {"total", 700},
                        {"frames", nlohmann::json::array({{"main", "train.py:88"},
                                                          {"Photos.__getitem__", "data.py:31"},
                                                          {"resize", "PIL"},
                                                          {"step", "train.py:61"}})},
                        {"stacks", {{"input", 400, {0, 1, 2}}, {"input", 90, {0, 1}}, {"train", 210, {0, 3}}}}}});
  return run;
}

RunData cut(RunData run) {
  run.meta.erase("end_ns");
  run.meta.erase("outcome");
  run.meta.erase("exit");
  return run;
}

void write_all(const std::filesystem::path& folder) {
  testing::Script shorter = testing::naive_script();
  shorter.steps = 3;
  testing::write_record(with_stacks(testing::scripted_run(testing::naive_script())), folder / "superres-naive");
  testing::write_record(testing::scripted_run(testing::tuned_script()), folder / "superres-tuned");
  testing::write_record(testing::scripted_run(testing::gpu_script()), folder / "keypoint-h100");
  testing::write_record(optimise(), folder / "optimise");
  testing::write_record(nasty(), folder / "nasty");
  testing::write_record(RunData{}, folder / "empty");
  testing::write_record(testing::scripted_run(shorter), folder / "short");
  testing::write_record(cut(testing::scripted_run(testing::naive_script())), folder / "cut");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    std::fputs("usage: unidle_sample_records FOLDER\n", stderr);
    return 2;
  }
  try {
    write_all(argv[1]);
    return 0;
  } catch (const unidle::Error& error) {
    std::fprintf(stderr, "unidle_sample_records: %s\n", error.what());
    return error.exit_code();
  }
}
