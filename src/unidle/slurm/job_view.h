// A job with what its record or its logs say.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unidle/language/language.h"
#include "unidle/monitor/snapshot.h"
#include "unidle/slurm/job.h"
#include "unidle/slurm/progress.h"

namespace unidle::slurm {

/// The records of the job in the results folder: one, or one per node; for a requeued job those of its last run.
std::vector<std::filesystem::path> records_of(const std::string& id, const std::filesystem::path& results);

/// The files of a job: in the folder that its comment names, otherwise in `results`.
struct JobFiles {
  std::vector<std::filesystem::path> records;  // one per node
  std::vector<std::filesystem::path> logs;     // used when there is no record
  std::filesystem::path output;                // what the job printed; empty when unknown
};
/// Never throws when files are missing; the lists are then empty.
JobFiles files_of(const Job& job, const std::filesystem::path& results);

/// How well a job used what it held.
struct Use {
  std::optional<double> gpu;                // 0..1, mean over its GPUs and its time
  std::optional<double> cpus;               // cores in use, mean, summed over all nodes
  std::optional<double> node_cpus;          // of the node that used most; an upper bound when that is unknown
  std::optional<double> peak_memory_bytes;  // the same
};
/// From the records, otherwise from accounting.
Use use_of(const Job& job, const JobFiles& files);

/// GPU hours that were allocated but idle; nothing without GPUs or when their utilization is unknown.
std::optional<double> wasted_gpu_hours(const Job& job, const Use& use);
std::optional<double> gpu_hours(const Job& job);

/// "RUNNING for 0:12:31 of 4:00:00 on gpu07", "waits: Priority", "TIMEOUT after ..."
std::string state_text(const Job& job, Language language = Language::kEnglish);

/// A changed #SBATCH line that the use suggests, with its reason: {"--mem=12G", "9.4 GiB was the most in use"}.
struct LineChange {
  std::string line;
  std::string why;
};
/// A job and what is known of its run.
struct Row {
  Job job;
  Use use;
  std::optional<monitor::RunNow> now;  // for a running job
  std::optional<Progress> progress;    // for a job that has begun

  /// The predicted total duration at the pace so far, in seconds.
  std::optional<double> expected() const { return expected_s(job, progress); }
};
Row row_of(Job job, const JobFiles& files);

/// `workers`: the number that the diagnosis proposes for loader.workers, if it does.
std::vector<LineChange> proposals(const Row& row, std::optional<int> workers, Language language = Language::kEnglish);

nlohmann::ordered_json to_json(const Row& row);

}  // namespace unidle::slurm
