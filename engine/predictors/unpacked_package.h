// Unpacks an AOTInductor package into a folder that is removed however the program ends.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "unidle/base/files.h"

namespace torch::inductor {
class AOTIModelContainerRunner;
}

namespace unidle::engine {

/// torch's loader unpacks into a random folder in /tmp, which remains when the program is killed. This class uses a
/// folder that the next program to open a package removes. Supports only packages with a compiled library. As
/// thread-safe as its runner.
class UnpackedPackage {
 public:
  /// Loading runs code from the package. Throws kInput for an invalid package.
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
