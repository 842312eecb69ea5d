// Formats jobs as text for a terminal.
#pragma once

#include <string>
#include <vector>

#include "unidle/slurm/job_view.h"

namespace unidle::slurm {

/// One line per job: running jobs first, then waiting ones, then finished ones.
std::string status_table(std::vector<Row> rows, Language language = Language::kEnglish);
/// One line per job with GPUs, the most wasteful first; then the total allocated and wasted.
/// `price`: of a GPU hour; zero: no money is shown.
std::string top_table(std::vector<Row> rows, Language language = Language::kEnglish, double price = 0);
/// Several lines about one job.
std::string job_text(const Row& row, Language language = Language::kEnglish);

}  // namespace unidle::slurm
