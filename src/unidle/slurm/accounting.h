// What Slurm's accounting (sacct) tells of jobs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/slurm/job.h"

namespace unidle::slurm {

/// The command whose output parse_sacct() reads; which jobs it is asked about is to be added.
std::vector<std::string> sacct_command();

/// A line a job, followed by its steps, which alone know the memory. Columns that are missing are empty.
std::vector<Job> parse_sacct(std::string_view text);

}  // namespace unidle::slurm
