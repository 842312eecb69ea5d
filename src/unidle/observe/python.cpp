#include "unidle/observe/python.h"

#include <cstdlib>
#include <string_view>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::observe {

namespace fs = std::filesystem;

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// The folder that holds bin/, lib/ and share/; empty when the kernel does not report the program's path.
fs::path prefix() {
  try {
    return program_folder().parent_path();
  } catch (const fs::filesystem_error&) {
    return {};
  }
}

std::optional<fs::path> existing(const fs::path& path) {
  std::error_code failure;
  return fs::exists(path, failure) ? std::optional(path) : std::nullopt;
}

}  // namespace

std::optional<fs::path> find_python_shim() {
  const std::string named = variable("UNIDLE_SHIM_DIR");
  const fs::path folder = named.empty() ? prefix() / "share/unidle/python/shim" : fs::path(named);
  return existing(folder / "sitecustomize.py") ? std::optional(folder) : std::nullopt;
}

std::optional<fs::path> find_probe_library() { return existing(prefix() / "lib/libunidle_probe.so"); }

void add_python_shim(std::map<std::string, std::string>& environment) {
  const auto shim = find_python_shim();
  if (!shim) {
    const std::string named = variable("UNIDLE_SHIM_DIR");
    const fs::path sought = named.empty() ? prefix() / "share/unidle/python/shim" : fs::path(named);
    throw Error(ErrorCode::kMissing, (sought / "sitecustomize.py").string(), "is not there",
                "install unidle whole, or name the folder in UNIDLE_SHIM_DIR");
  }
  const auto given = environment.find("PYTHONPATH");
  const std::string before = given != environment.end() ? given->second : variable("PYTHONPATH");
  environment["PYTHONPATH"] = shim->string() + (before.empty() ? "" : ":" + before);
  if (const auto library = find_probe_library()) {
    environment["UNIDLE_PROBE_LIBRARY"] = library->string();
  }
  if (const auto library = existing(prefix() / "lib/libunidle.so"); library && variable("UNIDLE_LIBRARY").empty()) {
    environment["UNIDLE_LIBRARY"] = library->string();
  }
  // A value that the user set, even an empty one, stays.
  if (const auto library = existing(prefix() / "lib/_unidle_light.abi3.so");
      library && std::getenv("UNIDLE_LIGHT_LIBRARY") == nullptr) {
    environment["UNIDLE_LIGHT_LIBRARY"] = library->string();
  }
}

}  // namespace unidle::observe
