#include "unidle/cache/inputs.h"

#include <unordered_set>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::cache {

namespace {

std::string_view without_blanks(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  return begin == std::string_view::npos ? "" : line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

std::vector<std::string> inputs_of(std::string_view text) {
  std::vector<std::string> inputs;
  bool fasta = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = without_blanks(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.starts_with('>') && (fasta || inputs.empty())) {
      fasta = true;
      inputs.emplace_back();
    } else if (fasta) {
      inputs.back() += line;
    } else if (!line.empty()) {
      inputs.emplace_back(line);
    }
  }
  std::unordered_set<std::string> seen;
  std::erase_if(inputs, [&](const std::string& input) { return input.empty() || !seen.insert(input).second; });
  return inputs;
}

std::vector<std::string> read_inputs(const std::filesystem::path& path) {
  std::vector<std::string> inputs = inputs_of(read_file(path));
  if (inputs.empty()) {
    throw Error(ErrorCode::kInput, path.string(), "has no inputs", "one a line, or a FASTA file");
  }
  return inputs;
}

}  // namespace unidle::cache
