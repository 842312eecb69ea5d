// Diagnoses the nodes of one job, each with its own record, as one run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/diagnose/policy.h"
#include "unidle/diagnose/signals.h"

namespace unidle::diagnose {

struct NodeSignals {
  std::string node;  // the node's name
  Signals signals;
  std::optional<double> ended;  // seconds since 1970, when known: the node that failed first is decisive
};

/// The diagnosis of the decisive node: the one that failed by its own fault or first, else the one whose rank the
/// others wait for, else the first that is not healthy. Ranks and samples are those of all nodes. Findings that only
/// other nodes have are added; their evidence names the node. REQUIRES: at least one node.
Diagnosis diagnose_nodes(std::vector<NodeSignals> nodes, const Policy& policy = {},
                         Language language = Language::kEnglish);

/// `records`: record folders, each named after its node. A single one gives diagnose_record(). An unreadable one is
/// listed in Diagnosis::nodes. Throws what diagnose_record() throws when none can be read.
Diagnosis diagnose_records(const std::vector<std::filesystem::path>& records, const Policy& policy = {},
                           Language language = Language::kEnglish);

/// The records in `path`: `path` itself, or the folders of the nodes in it, by name. Empty when there is none.
std::vector<std::filesystem::path> records_of_nodes(const std::filesystem::path& path);

}  // namespace unidle::diagnose
