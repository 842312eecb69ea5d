// Where the program's time went by call stack, from the stack samples in a record.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/account/account.h"
#include "unidle/language/translator.h"
#include "unidle/report/page/html.h"

namespace unidle::report {

struct FlameNode {
  std::string function;  // the phase's name in the record for the nodes of a root
  std::string where;     // "train.py:14", or the package of the function; empty for a phase
  std::int64_t looks = 0;
  std::vector<FlameNode> children;  // the most expensive first
};

/// The stack samples of all processes with this role, by phase and then by call; no looks without samples.
FlameNode flame_of(const account::RunData& run, std::string_view role);

/// A flame graph of the training processes and one of the loader's workers; nothing without stack samples.
Html flame_graphs_html(const account::RunData& run, const Translator& translator);

}  // namespace unidle::report
