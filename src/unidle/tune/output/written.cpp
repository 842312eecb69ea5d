#include "unidle/tune/output/written.h"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/base/signals_blocked.h"
#include "unidle/record/listing.h"
#include "unidle/record/record.h"
#include "unidle/tune/output/undo.h"

namespace unidle::tune {

void write_record(OptimizeResult& result, std::string_view name) {
  const std::filesystem::path folder = record::new_run_folder(name);
  try {
    record::Writer writer(folder);
    nlohmann::json document = to_json(result);
    writer.set_meta(record::meta::kKind, record::meta::kSearch);
    writer.set_meta(record::meta::kSearchedBy, name);
    writer.set_meta(record::meta::kStartedUtc, format_utc(system_clock().wall_ns()));
    for (const char* key :
         {"config", "conclusion", "trials", "changes", "verification", "not_taken", "plan", "program", "notes"}) {
      writer.set_meta(key, document[key]);
    }
    writer.flush();
    result.record = folder;
    if (result.program && !result.program->patch.empty()) {
      write_file_atomic(folder / record::kPatch, result.program->patch);
    }
  } catch (const Error& failure) {
    spdlog::warn("the trials were not recorded: {}", failure.what());
  }
}

void check_output(const std::filesystem::path& config, const std::filesystem::path& output) {
  const std::filesystem::path folder = output.has_parent_path() ? output.parent_path() : ".";
  std::error_code ignored;
  if (std::filesystem::is_directory(output, ignored)) {
    throw Error(ErrorCode::kUsage, output.string(), "is a folder", "name a file in it");
  }
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw Error(ErrorCode::kUsage, folder.string(), "is not a folder that files can be written into", "make it first");
  }
  if (std::filesystem::equivalent(output, config, ignored)) {
    throw Error(ErrorCode::kUsage, output.string(), "is the configuration itself",
                "use --in-place to change it, with a backup");
  }
  if (::access(folder.c_str(), W_OK) != 0) {
    throw system_error(ErrorCode::kIo, folder.string(), "cannot be written into", errno);
  }
}

Written write_result(const OptimizeResult& result, const std::optional<std::filesystem::path>& output, bool in_place,
                     Disk& disk) {
  const std::filesystem::path config = result.config;
  Written written;
  if (in_place) {
    const SignalsBlocked none(kEndingSignals);  // a backup of an unchanged file would mislead --undo
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
    check_output(config, written.output);
    write_file_like(written.output, result.after, config, disk);
  }
  return written;
}

}  // namespace unidle::tune
