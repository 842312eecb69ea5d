// A summary as text for people and as JSON for programs and records.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "unidle/language/language.h"
#include "unidle/trace/summary.h"

namespace unidle::trace {

/// docs/trace.md describes the document, "unidle.trace/1". What was not observed is null or an empty list.
nlohmann::json to_json(const TraceSummary& trace);

/// The inverse, for the fields that the document has. Throws kCorrupt (subject: `from`) for any other document.
TraceSummary summary_from_json(const nlohmann::json& document, const std::string& from);

/// Lines of at most `width` columns.
std::string to_text(const TraceSummary& trace, int width, Language language = Language::kEnglish);

/// Compares two traces: per step when both mark steps, otherwise per window. Lists the longest kernels and operators of
/// either.
std::string comparison_text(const TraceSummary& before, const TraceSummary& after, int width,
                            Language language = Language::kEnglish);

/// A kernel's or an event's name in `columns` columns. Drops prefixes that most names share, then shortens the end,
/// which matters less in a C++ name.
std::string shortened(const std::string& given, int columns);

}  // namespace unidle::trace
