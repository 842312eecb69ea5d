// A record.db of any bytes, read whole.
#include "fuzz.h"
#include "scratch_record.h"

namespace unidle::fuzz::targets {

namespace {

void run_record_file(std::string_view bytes) {
  write_rows("");  // no log of an earlier input beside it
  const std::filesystem::path folder = put("record/record.db", bytes).parent_path();
  may_refuse([&] {
    const record::Reader reader(folder);
    reader.meta("command");
    reader.steps();
    reader.last_steps(10);
    reader.spans();
    reader.sample_work();
    for (const std::string& name : reader.metric_names()) {
      reader.metrics(name);
    }
    reader.settings();
    reader.notes();
    reader.output_tail("stderr");
    for (const record::Series& series : reader.all_series()) {
      reader.points(series);
    }
  });
  diagnose_record(folder);
}

}  // namespace

const Target& record_file() {
  static const Target kTarget = {"record_file", run_record_file};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
