// Jobs as text, for a terminal.
#pragma once

#include <string>
#include <vector>

#include "unidle/slurm/job_view.h"

namespace unidle::slurm {

/// A line a job: those that run first, then those that wait, then those that have ended.
std::string status_table(std::vector<Row> rows, Language language = Language::kEnglish);
/// A line a job with GPUs, the one that wasted most first; below them what all held and wasted together.
std::string top_table(std::vector<Row> rows, Language language = Language::kEnglish);
/// Several lines about one job.
std::string job_text(const Row& row, Language language = Language::kEnglish);

}  // namespace unidle::slurm
