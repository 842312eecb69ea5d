#include "unidle/trace/injection.h"

#include <cstdlib>

#include "unidle/base/error.h"

namespace unidle::trace {

std::filesystem::path library_to_inject(const std::filesystem::path& programs) {
  const char* other = std::getenv("CUDA_INJECTION64_PATH");
  if (other != nullptr && *other != '\0') {
    throw Error(ErrorCode::kUsage, "--kernels", "CUDA_INJECTION64_PATH is set: another tool watches the kernels",
                "unset it, or leave --kernels out");
  }
  const std::filesystem::path library = programs.parent_path() / "lib/libunidle_cupti.so";
  if (!std::filesystem::exists(library)) {
    throw Error(ErrorCode::kMissing, library.string(), "was not built", "./dev build makes it");
  }
  return library;
}

}  // namespace unidle::trace
