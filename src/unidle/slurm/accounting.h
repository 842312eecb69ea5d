// Reads what Slurm's accounting (sacct) knows of jobs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/slurm/job.h"

namespace unidle::slurm {

/// The command whose output parse_sacct() reads; the caller appends which jobs to ask about.
std::vector<std::string> sacct_command();

/// Expects a line for each job, followed by its steps, which alone report memory. Missing columns are read as empty.
std::vector<Job> parse_sacct(std::string_view text);

}  // namespace unidle::slurm
