// Keeps the runs of a search out of the user's experiment trackers.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace unidle::experiment {

/// Environment variables with which experiment trackers write to `own` instead of a server and find no token.
std::map<std::string, std::string> muted_trackers(const std::filesystem::path& own);

/// Files in the user's home with tokens of trackers and hubs; a trial with layers sees them empty.
std::vector<std::filesystem::path> files_with_tokens();

}  // namespace unidle::experiment
