// Prints the figures of optimize and slurm for a record, as JSON, for account_test.sh:
// unidle_figures RECORD [RESULTS ID]
//
// Both commands read records only as part of something larger (a trial, a job), which a test could only create with a
// program and a cluster.
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>

#include "unidle/account/account.h"
#include "unidle/slurm/analysis.h"
#include "unidle/tune/trials/trial_record.h"

namespace {

using nlohmann::json;

json or_null(const std::optional<double>& value) { return value ? json(*value) : json(); }

json trial_figures(const char* record) {
  unidle::experiment::LossScale scale;
  unidle::tune::TrialResult result;
  const bool taken = unidle::tune::read_trial(unidle::account::load_run(record), scale, result);
  return {{"taken", taken},
          {"total_samples_per_s", taken ? json(result.rate) : json()},
          {"samples_per_s", or_null(result.step_rate)},
          {"others_cpus", or_null(result.others_cpus)}};
}

nlohmann::ordered_json job_figures(const char* results, const char* id) {
  unidle::slurm::Job job;
  job.id = id;
  job.state = "COMPLETED";
  return unidle::slurm::to_json(unidle::slurm::analyze(job, results, unidle::Language::kEnglish));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) {
    std::cerr << "usage: unidle_figures RECORD [RESULTS ID]\n";
    return 2;
  }
  try {
    nlohmann::ordered_json document = {{"trial", trial_figures(argv[1])}};
    if (argc == 4) {
      document["slurm"] = job_figures(argv[2], argv[3]);
    }
    std::cout << document.dump() << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "unidle_figures: " << error.what() << "\n";
    return 2;
  }
}
