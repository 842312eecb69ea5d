#include "unidle/tune/output/written.h"

#include <nlohmann/json.hpp>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/record/record.h"
#include "unidle/tune/output/undo.h"

namespace unidle::tune {

void write_record(OptimizeResult& result) {
  const std::filesystem::path folder = record::new_run_folder("optimize");
  try {
    record::Writer writer(folder);
    nlohmann::json document = to_json(result);
    writer.set_meta("kind", "optimize");
    writer.set_meta(record::meta::kStartedUtc, format_utc(system_clock().wall_ns()));
    for (const char* key :
         {"config", "conclusion", "trials", "changes", "verification", "not_taken", "plan", "program", "notes"}) {
      writer.set_meta(key, document[key]);
    }
    writer.flush();
    result.record = folder;
  } catch (const Error& failure) {
    spdlog::warn("the trials were not recorded: {}", failure.what());
  }
}

Written write_result(const OptimizeResult& result, const std::optional<std::filesystem::path>& output, bool in_place,
                     Disk& disk) {
  const std::filesystem::path config = result.config;
  Written written;
  if (in_place) {
    written.backup = free_name(config, "bak");
    written.output = config;
    write_file_like(*written.backup, result.before, config, disk);
    try {
      replace_file(config, result.after, disk);
    } catch (...) {
      disk.unlink(*written.backup);
      throw;
    }
  } else {
    written.output = output.value_or(beside(config, "optimized"));
    std::error_code ignored;
    if (std::filesystem::equivalent(written.output, config, ignored)) {
      throw Error(ErrorCode::kUsage, written.output.string(), "is the configuration itself",
                  "use --in-place to change it, with a backup");
    }
    write_file_like(written.output, result.after, config, disk);
  }
  return written;
}

}  // namespace unidle::tune
