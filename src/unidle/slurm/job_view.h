// A job with what its record or its logs tell.
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

/// The records of the job in the results folder: one, or a node's each; of a job that was queued again the last ones.
std::vector<std::filesystem::path> records_of(const std::string& id, const std::filesystem::path& results);

/// Where a job's files are: in the folder that its comment names, else in `results`.
struct JobFiles {
  std::vector<std::filesystem::path> records;  // of several nodes one each
  std::vector<std::filesystem::path> logs;     // where there is no record
  std::filesystem::path output;                // what it printed; empty where that is not known
};
/// Never throws for what is not there; then both are empty.
JobFiles files_of(const Job& job, const std::filesystem::path& results);

/// How well a job used what it held.
struct Use {
  std::optional<double> gpu;                // 0..1, mean over its GPUs and its time
  std::optional<double> cpus;               // cores in use, mean, of all nodes together
  std::optional<double> node_cpus;          // of the node that used most; at most so many where that is not known
  std::optional<double> peak_memory_bytes;  // the same
};
/// From the records; what these do not tell, from accounting.
Use use_of(const Job& job, const JobFiles& files);

/// GPU hours that were held and not used; nothing without GPUs or where nobody knows how busy they were.
std::optional<double> wasted_gpu_hours(const Job& job, const Use& use);
std::optional<double> gpu_hours(const Job& job);

/// "RUNNING for 0:12:31 of 4:00:00 on gpu07", "waits: Priority", "TIMEOUT after ..."
std::string state_text(const Job& job, Language language = Language::kEnglish);

/// Changed #SBATCH lines that the use proposes, each with its reason: {"--mem=12G", "9.4 GiB was the most in use"}.
struct Proposal {
  std::string line;
  std::string why;
};
/// A job beside what is known of its run.
struct Row {
  Job job;
  Use use;
  std::optional<monitor::RunNow> now;  // of a job that runs
  std::optional<Progress> progress;    // of one that has begun

  /// How long it takes as a whole at its pace so far, in seconds.
  std::optional<double> expected() const { return expected_s(job, progress); }
};
Row row_of(Job job, const JobFiles& files);

/// `workers` is what the diagnosis wants for loader.workers, if it does.
std::vector<Proposal> proposals(const Row& row, std::optional<int> workers, Language language = Language::kEnglish);

nlohmann::ordered_json to_json(const Row& row);

}  // namespace unidle::slurm
