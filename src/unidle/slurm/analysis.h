// Why a job failed or idled, and what to ask Slurm for the next time.
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
  std::optional<diagnose::Diagnosis> diagnosis;  // of the records, else of the logs
  std::vector<Proposal> proposals;

  /// The job failed, whatever Slurm or its last line say.
  bool failed() const;
};

/// `results`: where the files of a job that was not submitted by us are. Throws what diagnosing throws.
Analysis analyze(Job job, const std::filesystem::path& results, Language language);

nlohmann::ordered_json to_json(const Analysis& analysis);

}  // namespace unidle::slurm
