// How far a job has come, by what it prints.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "unidle/logs/text_log.h"
#include "unidle/slurm/job.h"

namespace unidle::slurm {

struct Progress {
  std::string of;    // "step", "epoch", ...: what is counted
  double done = 0;   // of an epoch under way its part
  double total = 0;  // above 0

  double share() const { return done / total; }
};

/// By counts with a total, "step 40/300" or "Epoch 2/10" with a progress bar; nothing where the whole is not told.
std::optional<Progress> progress_in(const logs::TextLog& log);

/// By the end of a job's output; nothing where that cannot be read.
std::optional<Progress> progress_at_end_of(const std::filesystem::path& output);

/// How long the whole takes at the pace so far, in seconds; nothing before it has begun.
std::optional<double> expected_s(const Job& job, const std::optional<Progress>& progress);

/// Whether Slurm or the kernel says at the end of the output that it ended the job for want of memory. A job whose
/// step was killed so is FAILED to Slurm where its script went on.
bool killed_for_memory(const std::filesystem::path& output);

}  // namespace unidle::slurm
