// Writes the scripted records into the folder given as the only argument: naive, tuned, gpu, optimise, nasty, empty,
// short and cut.
#include <cstdio>
#include <filesystem>
#include <limits>

#include "unidle/base/error.h"
#include "unidle/report/testing/scripted_run.h"

namespace {

using unidle::account::RunData;
namespace testing = unidle::report::testing;

RunData optimise() {
  RunData run;
  run.meta["outcome"] = "completed";
  run.meta["start_ns"] = 0;
  run.meta["end_ns"] = 90'000'000'000;
  run.meta["changes"] = nlohmann::json::parse(R"([
    {"knob": "loader.workers", "from": 0, "to": 4, "reason": "Input wait was 61 % of the step.", "gain": 2.42},
    {"knob": "precision.amp", "from": "off", "to": "bf16", "reason": "The CPU has bf16 matrix units.", "gain": 1.31},
    {"knob": "optimizer.fused", "from": false, "to": true, "reason": "The optimiser took 5 % of the step.", "gain": 1.04}
  ])");
  run.meta["trials"] = nlohmann::json::parse(R"([
    {"trial": 1, "change": "baseline", "samples_per_s": 26.6, "kept": true},
    {"trial": 2, "change": "loader.workers=4", "samples_per_s": 64.4, "kept": true},
    {"trial": 3, "change": "loader.workers=8", "samples_per_s": 63.9, "kept": false},
    {"trial": 4, "change": "precision.amp=bf16", "samples_per_s": 84.4, "kept": true}
  ])");
  run.meta["verification"] = nlohmann::json::parse(R"({"ratio": 3.98, "loss": "equal", "psnr_difference_db": 0.01})");
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

RunData cut(RunData run) {
  run.meta.erase("end_ns");
  run.meta.erase("outcome");
  run.meta.erase("exit");
  return run;
}

void write_all(const std::filesystem::path& folder) {
  testing::Script shorter = testing::naive_script();
  shorter.steps = 3;
  testing::write_record(testing::scripted_run(testing::naive_script()), folder / "superres-naive");
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
