// Data that installed Python packages carry.
#pragma once

#include <filesystem>
#include <optional>

namespace unidle::workloads {

/// Where `file` (e.g. "skimage/data/astronaut.png") lies: in the packages of $UNIDLE_PYTHON, else of a `.venv` above
/// this program or the current folder, else of the python3 on PATH. Nothing is imported.
std::optional<std::filesystem::path> find_package_file(const std::filesystem::path& file);

}  // namespace unidle::workloads
