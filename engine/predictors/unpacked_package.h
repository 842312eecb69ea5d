// A package of AOTInductor, unpacked where it is cleared away however the program ends.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "unidle/base/files.h"

namespace torch::inductor {
class AOTIModelContainerRunner;
}

namespace unidle::engine {

/// torch's own loader unpacks into a folder of a random name in /tmp, which stays there when the program is killed.
/// This takes a folder that the next one removes that opens a package. Of packages only those that hold a compiled
/// library. Thread-safe as its runner is.
class UnpackedPackage {
 public:
  /// Loading it runs the code that is in it. Throws kInput for what is no such package.
  explicit UnpackedPackage(const std::string& path);
  ~UnpackedPackage();
  UnpackedPackage(const UnpackedPackage&) = delete;
  UnpackedPackage& operator=(const UnpackedPackage&) = delete;

  const std::unordered_map<std::string, std::string>& metadata() const { return metadata_; }
  torch::inductor::AOTIModelContainerRunner& runner() { return *runner_; }

 private:
  TemporaryFolder folder_;  // outlives the runner, which may load kernels from it late
  std::unordered_map<std::string, std::string> metadata_;
  std::unique_ptr<torch::inductor::AOTIModelContainerRunner> runner_;
};

}  // namespace unidle::engine
