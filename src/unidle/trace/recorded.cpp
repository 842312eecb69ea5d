#include "unidle/trace/recorded.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/record/note_types.h"
#include "unidle/trace/document.h"

namespace unidle::trace {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "trace-";
constexpr std::string_view kSuffix = ".json";

/// The pid in `trace-<pid>.json`; 0 for any other name.
std::int64_t process_of(const std::string& name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) {
    return 0;
  }
  std::int64_t pid = 0;
  const char* end = name.data() + name.size() - kSuffix.size();
  const auto [stopped, error] = std::from_chars(name.data() + kPrefix.size(), end, pid);
  return error == std::errc{} && stopped == end ? pid : 0;
}

std::vector<fs::path> trace_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    std::error_code unknown;
    const bool own = entry->is_regular_file(unknown) && !entry->is_symlink(unknown);
    if (own && process_of(entry->path().filename().string()) > 0) {
      files.push_back(entry->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

nlohmann::json analysed(const fs::path& file) {
  nlohmann::json note = {{"type", "trace_analysis"}, {"file", file.filename().string()}};
  try {
    logs::Source source(file);
    TraceSummary summary = read_trace(source);
    summary.file = file.filename().string();  // relative: the folder may move
    note["analysis"] = to_json(summary);
  } catch (const Error& error) {
    note["problem"] = error.message();
  }
  return note;
}

}  // namespace

void analyse_traces(record::Writer& writer, const fs::path& folder) {
  for (const fs::path& file : trace_files(folder)) {
    writer.add(record::Note{system_clock().now_ns(), process_of(file.filename().string()), analysed(file)});
  }
}

std::vector<RecordedTrace> recorded_traces(const record::Reader& reader) {
  std::vector<RecordedTrace> traces;
  record::each_note<record::NoteType::kTraceAnalysis>(reader.notes(), [&](const auto& note) {
    const std::string name = note.text("file");
    const nlohmann::json analysis = note.value("analysis");
    if (analysis.is_null() || process_of(name) == 0) {
      return;  // analyse_traces() writes no other names, and a path outside is not the record's
    }
    const fs::path file = reader.folder() / name;
    try {
      traces.push_back({note.process(), file, summary_from_json(analysis, file.string())});
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
      // Written by a newer version: a note that is not understood is ignored.
    }
  });
  std::sort(traces.begin(), traces.end(), [](const auto& a, const auto& b) { return a.process < b.process; });
  return traces;
}

std::optional<std::int64_t> attached_since(const std::vector<record::Note>& notes, std::int64_t process) {
  std::optional<std::int64_t> since;
  record::each_note<record::NoteType::kTrace>(notes, [&](const auto& note) {
    const auto told = note.whole("attached_ns");
    if (told && note.process() == process) {
      since = std::min(since.value_or(*told), *told);
    }
  });
  return since;
}

std::string why_no_trace(const record::Reader& reader) {
  std::string why;
  const std::vector<record::Note> notes = reader.notes();
  record::each_note<record::NoteType::kTrace>(notes, [&](const auto& note) {
    const std::string reason = note.text("reason");
    why = reason.empty() ? why : reason;
  });
  record::each_note<record::NoteType::kTraceAnalysis>(notes, [&](const auto& note) {
    const std::string problem = note.text("problem");
    why = problem.empty() ? why : note.text("file") + " " + problem;
  });
  return why;
}

}  // namespace unidle::trace
