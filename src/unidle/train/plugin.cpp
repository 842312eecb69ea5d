#include "unidle/train/plugin.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <string>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::train {

namespace {

constexpr const char* kHowToBuild = "docs/adding-a-workload.md says how it is built";

std::string loader_error() {
  const char* reason = dlerror();
  return reason != nullptr ? reason : "the system does not say why";
}

template <typename Function>
Function* function_of(void* library, const char* name, const std::string& path) {
  void* found = dlsym(library, name);
  if (found == nullptr) {
    throw Error(ErrorCode::kInput, path, fmt::format("is not a library with a workload: it has no function {}()", name),
                kHowToBuild);
  }
  return reinterpret_cast<Function*>(found);
}

}  // namespace

std::vector<std::string> plugin_flags() {
  Dl_info torch{};
  dladdr(reinterpret_cast<const void*>(&at::get_num_threads), &torch);
  const auto library = std::filesystem::weakly_canonical(torch.dli_fname != nullptr ? torch.dli_fname : "");
  const std::filesystem::path own = program_folder().parent_path() / "include";
  const std::filesystem::path of_torch = library.parent_path().parent_path() / "include";
  if (!std::filesystem::exists(own / "unidle/train/plugin.h")) {
    throw Error(ErrorCode::kMissing, own.string(), "has no unidle/train/plugin.h",
                "install unidle with its headers, with pip: pip install 'unidle[plugins]'");
  }
  if (!std::filesystem::exists(of_torch / "ATen/ATen.h")) {
    throw Error(ErrorCode::kMissing, of_torch.string(), "has no ATen/ATen.h", "torch's wheel brings it");
  }
  // Use torch's bundled fmt, header-only.
  return {
      "-std=c++20",        "-O2",      "-shared",         "-fPIC",    "-DFMT_HEADER_ONLY",
      "-I" + own.string(), "-isystem", of_torch.string(), "-isystem", (of_torch / "torch/csrc/api/include").string()};
}

const WorkloadKind& load_plugin(const std::filesystem::path& library) {
  const std::string path = library.string();
  if (const auto reason = why_no_file(library); reason || !std::filesystem::exists(library)) {
    throw Error(ErrorCode::kInput, path, reason.value_or("is not there"), kHowToBuild);
  }
  // A path with a slash is not searched for in system folders. Never unloaded: its code may be in use until the end.
  void* handle = dlopen(std::filesystem::absolute(library).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw Error(ErrorCode::kInput, path, "cannot be loaded: " + loader_error(), kHowToBuild);
  }
  const char* abi = function_of<const char*()>(handle, "unidle_plugin_abi", path)();
  if (abi == nullptr || std::strcmp(abi, UNIDLE_PLUGIN_ABI) != 0) {
    throw Error(ErrorCode::kInput, path,
                fmt::format("was built for '{}', this is '{}'", abi != nullptr ? abi : "", UNIDLE_PLUGIN_ABI),
                "build it again with this unidle");
  }
  const auto* kind = function_of<const WorkloadKind*()>(handle, "unidle_plugin_workload", path)();
  if (kind == nullptr || kind->traits.name.empty() || !kind->open) {
    throw Error(ErrorCode::kInput, path,
                "is not a library with a workload: its WorkloadKind has no name or no function open", kHowToBuild);
  }
  add_settings(kind->settings);
  return *kind;
}

}  // namespace unidle::train
