// Lists of inputs that a cache is to be warmed with.
#include "unidle/cache/inputs.h"

#include <set>

#include "fuzz.h"

namespace unidle::fuzz::targets {

namespace {

void run_inputs(std::string_view bytes) {
  std::set<std::string_view> seen;
  const std::vector<std::string> inputs = cache::inputs_of(bytes);
  for (const std::string& input : inputs) {
    require(!input.empty() && input.find('\n') == std::string::npos);
    require(seen.insert(input).second);
  }
  const std::filesystem::path path = put("inputs.txt", bytes);
  may_refuse([&] { require(cache::read_inputs(path) == inputs); });
}

}  // namespace

const Target& inputs() {
  static const Target kTarget = {"inputs", run_inputs};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
