// How far a job has come, judged by its output.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "unidle/logs/text_log.h"
#include "unidle/slurm/job.h"

namespace unidle::slurm {

struct Progress {
  std::string of;    // the unit that is counted: "step", "epoch", ...
  double done = 0;   // includes the finished part of the current epoch
  double total = 0;  // above 0

  double share() const { return done / total; }
};

/// Uses counts with a total, "step 40/300" or "Epoch 2/10" with a progress bar; nothing when the total is unknown.
std::optional<Progress> progress_in(const logs::TextLog& log);

/// Reads the end of a job's output; nothing when it is not readable.
std::optional<Progress> progress_at_end_of(const std::filesystem::path& output);

/// The predicted total duration at the pace so far, in seconds; nothing in the first hundredth, which is mostly
/// start-up.
std::optional<double> expected_s(const Job& job, const std::optional<Progress>& progress);

/// Whether Slurm or the kernel says at the end of the output that it killed the job for its memory use. Slurm reports a
/// job as FAILED when a step was killed but its script went on.
bool killed_for_memory(const std::filesystem::path& output);

}  // namespace unidle::slurm
