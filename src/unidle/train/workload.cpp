#include "unidle/train/workload.h"

#include "unidle/base/files.h"

namespace unidle::train {

std::filesystem::path data_folder(const Config& config) {
  const std::string& folder = config.text("data.folder");
  return folder.empty() ? home_folder() / "data" / config.text("workload") : std::filesystem::path(folder);
}

std::filesystem::path checkpoint_folder(const Config& config) {
  const std::string& folder = config.text("checkpoint.folder");
  return folder.empty() ? home_folder() / "checkpoints" / config.text("workload") : std::filesystem::path(folder);
}

}  // namespace unidle::train
