// A training log or Slurm output, and the guess at what a file is.
#include "unidle/logs/text_log.h"
#include "fuzz.h"
#include "unidle/logs/job_files.h"
#include "unidle/logs/sniff.h"

namespace unidle::fuzz::targets {

const Target& text_log() {
  static const Target kTarget = {
      "text_log", [](std::string_view bytes) {
        read_source(bytes, [&](logs::Source& source) {
          const logs::TextLog log = logs::read_text_log(source);
          const auto& phases = log.phases;
          require(phases.startup_s >= 0 && phases.train_s >= 0 && phases.validate_s >= 0 && phases.checkpoint_s >= 0);
          require(!log.first_ns || *log.first_ns <= *log.last_ns);
          logs::sniff_bytes(bytes, "input");
        });
        logs::carries_id(bytes, "52178");
        logs::time_range(put("text_log", bytes));
      }};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
