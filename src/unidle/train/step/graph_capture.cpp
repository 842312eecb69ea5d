#include "unidle/train/step/graph_capture.h"

#include <dlfcn.h>

#include <filesystem>

#include "unidle/base/files.h"
#include "unidle/base/log.h"

namespace unidle::train {

namespace {

constexpr const char* kLibrary = "libunidle_cuda_graphs.so";

/// Beside the program, or in ../lib, where it is installed.
std::filesystem::path library_path() {
  const std::filesystem::path folder = program_folder();
  for (const std::filesystem::path& path : {folder / kLibrary, folder.parent_path() / "lib" / kLibrary}) {
    if (std::filesystem::exists(status_of(path))) {
      return path;
    }
  }
  return kLibrary;
}

}  // namespace

std::unique_ptr<GraphCapture> graph_capture_of(at::Device device) {
  if (!device.is_cuda()) {
    return nullptr;
  }
  void* library = dlopen(library_path().c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: its graphs have its code
  void* make = library != nullptr ? dlsym(library, "unidle_graph_capture") : nullptr;
  if (make == nullptr) {
    const char* said = dlerror();
    spdlog::warn("{} could not be loaded: {}", kLibrary, said != nullptr ? said : "no reason was given");
    return nullptr;
  }
  return std::unique_ptr<GraphCapture>(reinterpret_cast<MakeGraphCapture>(make)(device.index()));
}

}  // namespace unidle::train
