#include "unidle/record/testing/sample_record.h"

#include "unidle/record/record.h"

namespace unidle::record::testing {

void write_sample(const std::filesystem::path& folder, int steps) {
  Writer writer(folder);
  writer.set_meta(meta::kCommand, {"python", "train.py"});
  for (int i = 0; i < steps; ++i) {
    Step step;
    step.index = i;
    step.t_ns = i * 1000;
    step.loss = 1.0 / (1 + i);
    writer.add(step);
  }
}

void read_all(const std::filesystem::path& path) {
  const Reader reader(path);
  reader.steps();
  reader.spans();
  reader.sample_work();
  reader.metric_names();
  reader.settings();
  reader.notes();
  reader.all_series();
  reader.meta(meta::kCommand);
  reader.output_tail("stdout");
}

}  // namespace unidle::record::testing
