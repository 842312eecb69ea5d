// The logs of one run, read and sorted by kind.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "unidle/diagnose/signals.h"
#include "unidle/language/language.h"
#include "unidle/logs/gpu_format.h"
#include "unidle/logs/text_log.h"
#include "unidle/trace/summary.h"

namespace unidle::diagnose::detail {

struct GpuFile {
  std::filesystem::path path;
  const unidle::logs::GpuFormat* format = nullptr;
  unidle::logs::GpuLog log;
};

struct JobLogs {
  Language language = Language::kEnglish;  // language of the evidence
  std::vector<unidle::logs::TextLog> texts;
  std::vector<GpuFile> gpus;
  std::vector<unidle::trace::TraceSummary> traces;

  /// The text log with most progress lines: the training's own log; nullptr when there is no text log.
  const unidle::logs::TextLog* main_text() const;
};

/// See read_log_signals().
JobLogs read_job_logs(const std::vector<std::filesystem::path>& files, Language language,
                      const unidle::logs::OnRead& on_read);

/// Begin and end of the run on the logs' clock, and the interval of the training loop.
struct JobTimes {
  std::optional<std::int64_t> begin_ns;
  std::optional<std::int64_t> end_ns;
  bool has_date = false;
};
JobTimes times_of(const JobLogs& logs);

/// How the run ended: outcome, failures, claims.
void add_end(const JobLogs& logs, Signals& signals);
/// Phases, counters, throughput, settings, and how far an interrupted run got.
void add_progress(const JobLogs& logs, const JobTimes& times, Signals& signals);
void add_gpus(const JobLogs& logs, const unidle::logs::OnRead& on_read, Signals& signals);
void add_traces(const JobLogs& logs, Signals& signals);

/// "run.log:17", without folders.
std::string place_in(const std::string& file, std::uint64_t line);
/// 2103611 -> "2,103,611"
std::string grouped(double whole);

}  // namespace unidle::diagnose::detail
