#include "unidle/slurm/analysis.h"

#include <utility>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/nodes.h"

namespace unidle::slurm {

namespace {

std::optional<diagnose::Diagnosis> diagnosis_of(const JobFiles& files, Language language) {
  if (!files.records.empty()) {
    return diagnose::diagnose_records(files.records, {}, language);
  }
  return files.logs.empty() ? std::nullopt : std::optional(diagnose::diagnose_logs(files.logs, {}, language));
}

/// The number of loader workers that a diagnosis proposes, if it does.
std::optional<int> workers_wanted(const diagnose::Diagnosis& diagnosis) {
  for (const diagnose::Finding& finding : diagnosis.findings) {
    for (const knobs::Change& fix : finding.fixes) {
      if (const auto workers = fix.to ? fix.to->integer() : std::nullopt; workers && fix.knob == "loader.workers") {
        return static_cast<int>(*workers);
      }
    }
  }
  return std::nullopt;
}

nlohmann::ordered_json to_json(const diagnose::NodeView& node, const diagnose::Diagnosis& diagnosis) {
  nlohmann::ordered_json document = {{"node", node.node},
                                     {"decides", node.node == diagnosis.node},
                                     {"outcome", diagnose::to_string(node.outcome)},
                                     {"verdict", diagnose::to_string(node.verdict)},
                                     {"busy", nullptr},
                                     {"samples_per_s", nullptr}};
  if (node.device.busy) {
    document["busy"] = *node.device.busy;
  }
  if (node.samples_per_s) {
    document["samples_per_s"] = *node.samples_per_s;
  }
  if (!node.problem.empty()) {
    document["problem"] = node.problem;
  }
  return document;
}

}  // namespace

bool Analysis::failed() const {
  return row.job.failed() || (diagnosis && diagnosis->verdict == diagnose::Verdict::kFailed);
}

Analysis analyze(Job job, const std::filesystem::path& results, Language language) {
  const JobFiles files = files_of(job, results);
  Analysis analysis{row_of(std::move(job), files), diagnosis_of(files, language), {}};
  if (!analysis.row.job.known()) {
    return analysis;  // what the job had requested is unknown
  }
  const auto workers = analysis.diagnosis ? workers_wanted(*analysis.diagnosis) : std::nullopt;
  analysis.proposals = proposals(analysis.row, workers, language);
  return analysis;
}

nlohmann::ordered_json to_json(const Analysis& analysis) {
  nlohmann::ordered_json document = to_json(analysis.row);
  document["sbatch"] = nlohmann::ordered_json::array();
  for (const LineChange& proposal : analysis.proposals) {
    document["sbatch"].push_back({{"line", proposal.line}, {"why", proposal.why}});
  }
  document["per_node"] = nlohmann::ordered_json::array();
  if (analysis.diagnosis) {
    for (const diagnose::NodeView& node : analysis.diagnosis->nodes) {
      document["per_node"].push_back(to_json(node, *analysis.diagnosis));
    }
  }
  document["diagnosis"] = analysis.diagnosis ? diagnose::to_json(*analysis.diagnosis) : nlohmann::ordered_json();
  return document;
}

}  // namespace unidle::slurm
