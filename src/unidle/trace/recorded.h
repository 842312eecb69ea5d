// Profiler windows of recorded runs: the shim writes trace files into the record's folder; their analysis is noted
// there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "unidle/record/record.h"
#include "unidle/trace/summary.h"

namespace unidle::trace {

/// Analyses every `trace-<pid>.json` in the folder of a record and writes a note (type "trace_analysis") for each. For
/// a file that is damaged or not a trace, the note has the reason. Throws only what the writer throws.
void analyse_traces(record::Writer& writer, const std::filesystem::path& folder);

/// One window of one process.
struct RecordedTrace {
  std::int64_t process = 0;
  std::filesystem::path file;  // in the record's folder; the file may be gone, the analysis remains
  TraceSummary summary;
};

/// Sorted by process. Skips notes that are not analyses.
std::vector<RecordedTrace> recorded_traces(const record::Reader& reader);

/// When a profiler's window attached CUPTI to that process, whose steps are slower from then to the end of the run.
/// Nothing without a window on a CUDA device.
std::optional<std::int64_t> attached_since(const std::vector<record::Note>& notes, std::int64_t process);

/// Why a run has no trace although one was requested; empty when no reason is recorded.
std::string why_no_trace(const record::Reader& reader);

}  // namespace unidle::trace
