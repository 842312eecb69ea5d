// Python programs: the shim that observes them from within.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace unidle::observe {

/// The folder with the shim's sitecustomize.py: $UNIDLE_SHIM_DIR, otherwise share/unidle/python/shim beside the folder
/// of the running program, in a build tree as in an installation. Nothing when it is not there.
std::optional<std::filesystem::path> find_python_shim();

/// libunidle_probe.so, lib/ beside the folder of the running program. Nothing when it is not there.
std::optional<std::filesystem::path> find_probe_library();

/// Adds what makes every Python of the command import the shim: it comes first on PYTHONPATH. What `environment` or our
/// own environment says is kept behind it. Does nothing when the shim is not to be found.
void add_python_shim(std::map<std::string, std::string>& environment);

}  // namespace unidle::observe
