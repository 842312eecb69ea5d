#include "unidle/observe/claim.h"

#include <fmt/format.h>

#include <cstdlib>

#include "unidle/base/error.h"
#include "unidle/base/log.h"
#include "unidle/record/record.h"

namespace unidle::observe {

namespace fs = std::filesystem;

namespace {

/// Variables by which srun, mpirun (Open MPI, and launchers that use PMI) and torchrun give the number of tasks.
bool is_one_of_several_tasks() {
  for (const char* name : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && std::atol(value) > 1) {
      return true;
    }
  }
  return false;
}

/// False for a record that is being written, was cut off, or cannot be read.
bool is_finished(const fs::path& folder) {
  try {
    return record::Reader(folder).meta(record::meta::kOutcome).has_value();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

void claim(const fs::path& asked, const std::function<void(const fs::path&)>& make) {
  fs::path folder = asked;
  for (int n = 2;; ++n) {
    try {
      make(folder);
      break;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUsage || (n == 2 && is_finished(asked) && !is_one_of_several_tasks())) {
        throw;
      }
    }
    const fs::path name = (asked.has_filename() ? asked : asked.parent_path()).filename();
    folder = asked.has_filename() ? asked.parent_path() : asked.parent_path().parent_path();
    folder /= fmt::format("{}-{}", name.string(), n);
  }
  if (folder != asked) {
    spdlog::warn("{} holds the record of another run: this one is in {}", asked.string(), folder.string());
  }
}

}  // namespace unidle::observe
