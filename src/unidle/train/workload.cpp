#include "unidle/train/workload.h"

#include <fmt/format.h>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::train {

namespace {

[[noreturn]] void lacks(const char* name) {
  throw Error(ErrorCode::kInternal, "workload", fmt::format("has held-out samples, but no {}", name));
}

}  // namespace

at::Tensor Workload::learn(const std::vector<at::Tensor>&, double) { return {}; }
at::Tensor Workload::metric_sums(const std::vector<at::Tensor>&) { lacks("metric_sums()"); }
at::Tensor Workload::metric_sums_of(std::int64_t) { lacks("metric_sums_of()"); }
std::map<std::string, double> Workload::metrics(const std::vector<double>&) const { lacks("metrics()"); }

std::filesystem::path data_folder(const Config& config) {
  const std::string& folder = config.text("data.folder");
  return folder.empty() ? home_folder() / "data" / config.text("workload") : std::filesystem::path(folder);
}

std::filesystem::path checkpoint_folder(const Config& config) {
  const std::string& folder = config.text("checkpoint.folder");
  return folder.empty() ? home_folder() / "checkpoints" / config.text("workload") : std::filesystem::path(folder);
}

}  // namespace unidle::train
