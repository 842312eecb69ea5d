// Profiler windows of recorded runs: the shim leaves trace files in the record's folder, their analysis goes into it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "unidle/record/record.h"
#include "unidle/trace/summary.h"

namespace unidle::trace {

/// Analyses every `trace-<pid>.json` in the folder of a record and notes it there (type "trace_analysis"). A file that
/// is no trace, or is damaged, is noted with the reason. Throws only what the writer throws.
void take_in(record::Writer& writer, const std::filesystem::path& folder);

/// One window of one process.
struct RecordedTrace {
  std::int64_t process = 0;
  std::filesystem::path file;  // in the record's folder; it may be gone, the analysis stays
  TraceSummary summary;
};

/// By process. Notes that are no analyses are passed over.
std::vector<RecordedTrace> recorded_traces(const record::Reader& reader);

/// Since when a profiler's window has CUPTI attached to that process, whose steps are slower from there to the end of
/// the run. Nothing without a window on a CUDA device.
std::optional<std::int64_t> attached_since(const std::vector<record::Note>& notes, std::int64_t process);

/// Why a run has no trace although one was asked for; empty when nothing says so.
std::string why_no_trace(const record::Reader& reader);

}  // namespace unidle::trace
