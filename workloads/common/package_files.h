// Finds data files in installed Python packages.
#pragma once

#include <filesystem>
#include <optional>

namespace unidle::workloads {

/// The path of `file` (e.g. "skimage/data/astronaut.png"), searched in the packages of $UNIDLE_PYTHON, otherwise of a
/// `.venv` above this program or the current folder, otherwise of the python3 on PATH. Imports nothing.
std::optional<std::filesystem::path> find_package_file(const std::filesystem::path& file);

}  // namespace unidle::workloads
