#include "unidle/telemetry/numa.h"

#include <algorithm>
#include <string>

#include "unidle/base/numbers.h"
#include "unidle/telemetry/host_state.h"

namespace unidle::telemetry {

namespace fs = std::filesystem;

std::vector<NumaNode> numa_nodes(const fs::path& root) {
  constexpr std::string_view kPrefix = "node";
  std::vector<NumaNode> nodes;
  std::error_code failure;
  for (fs::directory_iterator entry(root / "sys/devices/system/node", failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    const auto number = name.starts_with(kPrefix) ? parse_number<int>(name.substr(kPrefix.size())) : std::nullopt;
    if (!number) {
      continue;
    }
    NumaNode node{*number, parse_cpu_list(try_read_file(entry->path() / "cpulist").value_or(""))};
    if (!node.cpus.empty()) {  // skip nodes with memory only, such as an accelerator's
      nodes.push_back(std::move(node));
    }
  }
  std::sort(nodes.begin(), nodes.end(), [](const NumaNode& a, const NumaNode& b) { return a.number < b.number; });
  return nodes;
}

std::vector<NumaNode> nodes_within(std::vector<NumaNode> nodes, const std::vector<int>& cpus) {
  for (NumaNode& node : nodes) {
    std::erase_if(node.cpus, [&](int cpu) { return std::find(cpus.begin(), cpus.end(), cpu) == cpus.end(); });
  }
  std::erase_if(nodes, [](const NumaNode& node) { return node.cpus.empty(); });
  return nodes;
}

}  // namespace unidle::telemetry
