// A fast way to read the metadata of finished records, for lists of many records.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace unidle::record {

/// The values of the table `meta` that a list of runs shows. Returns nothing when the record may still be written to,
/// was cut off or is damaged; use Reader then, which reads it or says what is wrong. Never throws.
std::optional<std::map<std::string, nlohmann::json>> meta_of_ended(const std::filesystem::path& folder);

}  // namespace unidle::record
