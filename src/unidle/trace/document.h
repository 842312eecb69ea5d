// A summary as text for people and as JSON for programs and records.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "unidle/trace/summary.h"

namespace unidle::trace {

/// docs/trace.md describes the document, "unidle.trace/1". What was not seen is null or an empty list.
nlohmann::json to_json(const TraceSummary& trace);

/// The inverse, as far as the document goes. Throws kCorrupt (subject: `from`) for any other document.
TraceSummary summary_from_json(const nlohmann::json& document, const std::string& from);

/// Lines of at most `width` columns.
std::string to_text(const TraceSummary& trace, int width);

/// Two traces beside each other: by step where both mark steps, otherwise by window. Kernels and operators are the
/// longest of either.
std::string comparison_text(const TraceSummary& before, const TraceSummary& after, int width);

/// A kernel's or an event's name in `columns` columns: what stands in front of most says nothing, and the end of a C++
/// name less than its begin.
std::string shortened(const std::string& given, int columns);

}  // namespace unidle::trace
