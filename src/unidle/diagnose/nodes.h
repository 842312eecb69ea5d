// The nodes of one job, each with a record of its own, diagnosed as one run.
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
  std::string node;  // its name
  Signals signals;
  std::optional<double> ended;  // in seconds since 1970, where it is known: the first node to fail comes before others
};

/// The diagnosis of the node that decides: one that failed by a fault of its own, or first, else the one whose rank the
/// others wait for, else the first that is not healthy. It has the ranks and the samples of all nodes, and what is
/// wrong on other nodes alone; the evidence then names the node. REQUIRES: a node at least.
Diagnosis diagnose_nodes(std::vector<NodeSignals> nodes, const Policy& policy = {},
                         Language language = Language::kEnglish);

/// `records`: folders of records, a node's is named after it. Of one it is diagnose_record(). One that cannot be read
/// is told in Diagnosis::nodes. Throws what diagnose_record() throws where none can be read.
Diagnosis diagnose_records(const std::vector<std::filesystem::path>& records, const Policy& policy = {},
                           Language language = Language::kEnglish);

/// The records in `path`: itself, or the nodes' in the folders in it, by name. Empty where there is none.
std::vector<std::filesystem::path> records_of_nodes(const std::filesystem::path& path);

}  // namespace unidle::diagnose
