// Why a job failed or idled, and what to request from Slurm the next time.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/language/language.h"
#include "unidle/slurm/job_view.h"

namespace unidle::slurm {

struct Analysis {
  Row row;
  std::optional<diagnose::Diagnosis> diagnosis;  // from the records, otherwise from the logs
  std::vector<LineChange> proposals;

  /// Whether the job failed, by any source: Slurm, its output or the diagnosis.
  bool failed() const;
};

/// `results`: the folder with the files of a job that we did not submit. Throws what diagnosing throws.
Analysis analyze(Job job, const std::filesystem::path& results, Language language);

nlohmann::ordered_json to_json(const Analysis& analysis);

}  // namespace unidle::slurm
