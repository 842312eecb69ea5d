// Reads lists of inputs to compute ahead.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::cache {

/// The distinct inputs of a text in order: one per line, without surrounding blanks and blank lines; or, when the first
/// non-blank line begins with '>', the sequences of a FASTA file.
std::vector<std::string> inputs_of(std::string_view text);

/// The inputs of a file. Throws kInput when it is unreadable or has no inputs.
std::vector<std::string> read_inputs(const std::filesystem::path& path);

}  // namespace unidle::cache
