// Runs of a search stay out of the places where others look for runs.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace unidle::experiment {

/// Environment by which trackers of experiments write to `own` instead of a server, and by which no token is found.
std::map<std::string, std::string> muted_trackers(const std::filesystem::path& own);

/// Files in the user's home that hold tokens of trackers and hubs; a trial with layers reads them as empty.
std::vector<std::filesystem::path> files_with_tokens();

}  // namespace unidle::experiment
