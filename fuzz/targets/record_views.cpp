// The same rows as a report, a comparison, a timeline, the live view, and what the tuner reads of a trial.
#include "fuzz.h"
#include "scratch_record.h"
#include "unidle/account/program_options.h"
#include "unidle/monitor/collector.h"
#include "unidle/report/comparison.h"
#include "unidle/report/page.h"
#include "unidle/trace/recorded.h"
#include "unidle/trace/timeline.h"
#include "unidle/tune/trials/applied.h"
#include "unidle/tune/trials/trial_record.h"

namespace unidle::fuzz::targets {

namespace {

void read_as_trial(const record::Reader& reader, const account::RunData& run) {
  const knobs::Settings effective = tune::known_settings(tune::effective_settings(run));
  tune::applied_settings(reader, {{"loader.workers", "2"}, {"precision.amp", "bf16"}});
  account::omitted_options(run, {"python", "train.py", "--batch-size", "8"}, effective);
  experiment::LossScale scale;
  for (int trial = 0; trial < 2; ++trial) {
    tune::TrialResult result;
    tune::read_trial(run, scale, result);
  }
  tune::lengths_vary(run);
  tune::longest_in(run);
}

void run_record_views(std::string_view bytes) {
  const std::filesystem::path folder = write_rows(bytes);
  may_refuse([&] {
    const record::Reader reader(folder);
    monitor::read_run(folder);
    unidle::trace::recorded_traces(reader);
    unidle::trace::why_no_trace(reader);
    unidle::trace::write_timeline(reader, {}, scratch_folder() / "timeline.json");
    const account::RunData run = account::load_run(reader);
    read_as_trial(reader, run);
    report::page({{run, std::nullopt}, {run, std::nullopt}});
    const report::Comparison comparison = report::compare(run, run);
    report::to_text(comparison, 80, false);
    report::to_json(comparison);
  });
}

}  // namespace

const Target& record_views() {
  static const Target kTarget = {"record_views", run_record_views};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
