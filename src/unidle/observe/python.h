// Finds the shim that observes Python programs from within, and adds it to the environment.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace unidle::observe {

/// The folder with the shim's sitecustomize.py: $UNIDLE_SHIM_DIR, otherwise share/unidle/python/shim beside the folder
/// of the running program, both in a build tree and in an installation. Nothing if it does not exist.
std::optional<std::filesystem::path> find_python_shim();

/// libunidle_probe.so in lib/ beside the folder of the running program. Nothing if it does not exist.
std::optional<std::filesystem::path> find_probe_library();

/// Makes every Python process of the command import the shim, by putting it first on PYTHONPATH. Existing values of
/// `environment` or of unidle's own environment follow it. Does nothing when the shim is not found.
void add_python_shim(std::map<std::string, std::string>& environment);

}  // namespace unidle::observe
