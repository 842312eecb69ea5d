// Lists of inputs that are to be computed ahead.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::cache {

/// The inputs of a text, each once, in their order: one a line, without blank lines and blanks at the ends; or, when
/// the first line that is not blank begins with '>', the sequences of a FASTA file.
std::vector<std::string> inputs_of(std::string_view text);

/// Those of a file. Throws kInput when it cannot be read, or has none.
std::vector<std::string> read_inputs(const std::filesystem::path& path);

}  // namespace unidle::cache
