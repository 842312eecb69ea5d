// Builds packages of compiled losses with a Python that has this engine's torch, and keeps them for later runs.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "unidle/train/fuse/traced_loss.h"

namespace unidle::train {

/// Keeps packages in the folder `fused` of unidle's home folder, keyed by their inputs. One thread.
class PackageMaker {
 public:
  /// `stop` is polled while a compiler runs; null when nothing stops it.
  PackageMaker(at::Device device, const std::atomic<bool>* stop) : device_(device), stop_(stop) {}

  /// The package of this loss: an existing one, or one built now, which takes a minute or more and is announced on
  /// stderr. Throws kMissing when there is no such Python, kChild when it fails, and kCancelled.
  std::filesystem::path package_of(const TracedLoss& loss);
  /// The same, but always built: the existing one is unreadable.
  std::filesystem::path rebuild(const TracedLoss& loss);

 private:
  std::filesystem::path place_of(const TracedLoss& loss) const;
  void make(const TracedLoss& loss, const std::filesystem::path& place) const;

  at::Device device_;
  const std::atomic<bool>* stop_;
};

/// The folder of the LibTorch that this process uses.
std::filesystem::path libtorch_folder();

/// A Python with the same torch as this engine: $UNIDLE_PYTHON when set, otherwise the one beside our LibTorch,
/// otherwise python3. Throws kMissing, with the version that each has.
std::string matching_python();

}  // namespace unidle::train
