// Formats jobs as text for a terminal.
#pragma once

#include <string>
#include <vector>

#include "unidle/slurm/job_view.h"

namespace unidle::slurm {

/// One line per job: running jobs first, then waiting ones, then finished ones.
std::string status_table(std::vector<Row> rows, Language language = Language::kEnglish);

/// Sums over the jobs that have GPUs and do not wait.
struct Totals {
  double gpu_hours = 0;
  double wasted_gpu_hours = 0;
  std::size_t unknown = 0;  // jobs of which nobody knows how busy the GPUs were
};
Totals totals_of(const std::vector<Row>& rows);

/// One line per job with GPUs, the most wasteful first; then the total allocated and wasted.
/// `price`: of a GPU hour; zero: no money is shown.
std::string top_table(std::vector<Row> rows, Language language = Language::kEnglish, double price = 0);
/// Several lines about one job.
std::string job_text(const Row& row, Language language = Language::kEnglish);

}  // namespace unidle::slurm
