// One inspection function per kind of data.
#pragma once

#include <string>
#include <vector>

#include "unidle/data/inspect/inspection.h"

namespace unidle::data::inspect_kinds {

Inspection table(const std::vector<std::string>& files, const InspectOptions& options);
Inspection images(const std::string& path, const InspectOptions& options);
Inspection pairs(const std::string& folder, const InspectOptions& options);
Inspection tar(const std::vector<std::string>& archives, const InspectOptions& options);
Inspection npy(const std::string& path, const InspectOptions& options);
Inspection sequences(const std::string& path, const InspectOptions& options);

}  // namespace unidle::data::inspect_kinds
