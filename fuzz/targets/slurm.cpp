// What Slurm's commands print of jobs: lines of scontrol, and of sacct with | for its separator. Every job can be
// shown.
#include <cmath>
#include <nlohmann/json.hpp>
#include "fuzz.h"
#include "unidle/base/json.h"
#include "unidle/slurm/accounting.h"
#include "unidle/slurm/job_view.h"
#include "unidle/slurm/tables.h"

namespace unidle::fuzz::targets {

namespace {

void require_sound(const slurm::Job& job) {
  for (const auto& seconds : {job.elapsed_s, job.limit_s, job.cpu_time_s}) {
    require(!seconds || (std::isfinite(*seconds) && *seconds >= 0));
  }
  for (const auto& bytes : {job.memory_bytes, job.peak_memory_bytes}) {
    require(!bytes || (std::isfinite(*bytes) && *bytes >= 0));
  }
  require(job.gpus >= 0 && job.cpus >= 0 && job.nodes >= 0);
}

void show(std::vector<slurm::Job> jobs) {
  std::vector<slurm::Row> rows;
  for (slurm::Job& job : jobs) {
    require_sound(job);
    rows.push_back({std::move(job), {}, std::nullopt, std::nullopt});
    slurm::Row& row = rows.back();
    row.use = slurm::use_of(row.job, {});
    row.use.gpu = 0.5;
    slurm::state_text(row.job);
    slurm::job_text(row);
    slurm::proposals(row, std::nullopt);
    slurm::proposals(row, 4);
    json_text(slurm::to_json(row));
  }
  slurm::status_table(rows);
  slurm::top_table(std::move(rows));
}

void run_slurm(std::string_view bytes) {
  std::vector<slurm::Job> jobs;
  for (const std::string_view line : lines_of(bytes)) {
    jobs.push_back(slurm::parse_scontrol(line));
  }
  show(std::move(jobs));
  std::string table(bytes);
  std::replace(table.begin(), table.end(), '|', '\x1f');
  show(slurm::parse_sacct(table));
}

}  // namespace

const Target& slurm() {
  static const Target kTarget = {"slurm", run_slurm};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
