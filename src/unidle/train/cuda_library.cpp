#include "unidle/train/cuda_library.h"

#include <dlfcn.h>

#include <filesystem>

#include "unidle/base/files.h"
#include "unidle/base/log.h"

namespace unidle::train {

namespace {

constexpr const char* kLibrary = "libunidle_cuda.so";

/// Beside the program, or in ../lib when installed.
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

void* cuda_library_function(const char* name) {
  void* library = dlopen(library_path().c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: its objects live on
  void* function = library != nullptr ? dlsym(library, name) : nullptr;
  if (function == nullptr) {
    const char* said = dlerror();
    spdlog::warn("{} could not be used: {}", kLibrary, said != nullptr ? said : "no reason was given");
  }
  return function;
}

}  // namespace unidle::train
