// Packages of compiled losses, made by a Python that has the torch of this engine, and kept for later runs.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "unidle/train/fuse/traced_loss.h"

namespace unidle::train {

/// Keeps packages in the folder `fused` of unidle's home folder, under what they were made of. One thread.
class PackageMaker {
 public:
  /// `stop`: looked at while a compiler runs; null where nothing stops it.
  PackageMaker(at::Device device, const std::atomic<bool>* stop) : device_(device), stop_(stop) {}

  /// The package of this loss: one that is kept, or made now, which takes a minute or more and is said on stderr.
  /// Throws kMissing where there is no such Python, kChild where it fails, and kCancelled.
  std::filesystem::path package_of(const TracedLoss& loss);
  /// The same, made in any case: the one that is kept cannot be read.
  std::filesystem::path make_anew(const TracedLoss& loss);

 private:
  std::filesystem::path place_of(const TracedLoss& loss) const;
  void make(const TracedLoss& loss, const std::filesystem::path& place) const;

  at::Device device_;
  const std::atomic<bool>* stop_;
};

/// The folder of the LibTorch that this process runs with.
std::filesystem::path libtorch_folder();

/// A Python whose torch is this engine's: $UNIDLE_PYTHON where that is set, else the one beside our LibTorch, else
/// python3. Throws kMissing, with what each of them has.
std::string matching_python();

}  // namespace unidle::train
