#include "unidle/diagnose/signals_from_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "unidle/base/error.h"
#include "unidle/diagnose/logs/job_logs.h"
#include "unidle/logs/sniff.h"

namespace unidle::diagnose {

namespace detail {

namespace {

/// A log without anything of a run, as of one that ended before its first step, is still a log if it is named as one.
bool is_named_as_log(const std::filesystem::path& path) {
  static constexpr std::array<std::string_view, 3> kExtensions = {".log", ".out", ".err"};
  const std::string extension = path.extension().string();
  return std::ranges::find(kExtensions, extension) != kExtensions.end();
}

/// Reads one file; false when it has no usable content.
bool read_one(const std::filesystem::path& path, const logs::OnRead& on_read, JobLogs& job) {
  const auto [kind, gpu] = logs::sniff(path);
  if (kind == logs::Kind::kRecord) {
    throw Error(ErrorCode::kUsage, path.string(), "is a record: diagnose it by itself, without logs");
  }
  if (kind == logs::Kind::kEmpty) {
    return false;
  }
  logs::Source source(path, on_read);
  if (kind == logs::Kind::kGpu) {
    job.gpus.push_back({path, gpu, gpu->read(source, {})});
    return true;
  }
  if (kind == logs::Kind::kTrace) {
    job.traces.push_back(trace::read_trace(source));
    return true;
  }
  logs::TextLog text = logs::read_text_log(source);
  if (text.has_no_run_data() || (text.has_only_times() && logs::other_table(path))) {
    return false;
  }
  job.texts.push_back(std::move(text));
  return true;
}

}  // namespace

const logs::TextLog* JobLogs::main_text() const {
  const auto most = std::max_element(texts.begin(), texts.end(), [](const auto& a, const auto& b) {
    return std::pair(a.progress_lines, a.lines) < std::pair(b.progress_lines, b.lines);
  });
  return most == texts.end() ? nullptr : &*most;
}

JobLogs read_job_logs(const std::vector<std::filesystem::path>& files, Language language, const logs::OnRead& on_read) {
  JobLogs job;
  job.language = language;
  const std::filesystem::path* silent = nullptr;
  bool empty = false;
  for (const std::filesystem::path& file : files) {
    if (!read_one(file, on_read, job) && silent == nullptr) {
      silent = &file;
      std::error_code unknown;
      empty = std::filesystem::file_size(file, unknown) == 0;
    }
  }
  if (job.texts.empty() && job.gpus.empty() && job.traces.empty()) {
    if (silent == nullptr) {
      throw Error(ErrorCode::kUsage, "diagnose", "no log was named");
    }
    if (const auto table = empty ? std::nullopt : logs::other_table(*silent)) {
      throw Error(ErrorCode::kInput, silent->string(), table->what, table->instead);
    }
    if (!empty && is_named_as_log(*silent)) {
      logs::Source source(*silent);
      job.texts.push_back(logs::read_text_log(source));
      if (job.texts.back().lines > 1) {
        return job;
      }
    }
    throw Error(ErrorCode::kInput, silent->string(),
                empty ? "is empty" : "is not a log, a record or a trace that unidle can read",
                "expected: " + logs::known_logs());
  }
  return job;
}

JobTimes times_of(const JobLogs& job) {
  JobTimes times;
  const logs::TextLog* main = job.main_text();
  if (main == nullptr) {
    return times;
  }
  times.has_date = main->has_date;
  for (const logs::TextLog& text : job.texts) {
    if (text.has_date != main->has_date || !text.first_ns) {
      continue;
    }
    times.begin_ns = std::min(times.begin_ns.value_or(*text.first_ns), *text.first_ns);
    times.end_ns = std::max(times.end_ns.value_or(*text.last_ns), *text.last_ns);
  }
  return times;
}

std::string place_in(const std::string& file, std::uint64_t line) {
  return fmt::format("{}:{}", std::filesystem::path(file).filename().string(), line);
}

std::string grouped(double whole) {
  const std::string digits = fmt::format("{:.0f}", whole);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const bool group = i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0;
    text.append(group ? "," : "").push_back(digits[i]);
  }
  return text;
}

}  // namespace detail

Signals read_log_signals(const std::vector<std::filesystem::path>& files, Language language,
                         const logs::OnRead& on_read) {
  const detail::JobLogs job = detail::read_job_logs(files, language, on_read);
  Signals signals;
  detail::add_end(job, signals);
  detail::add_progress(job, detail::times_of(job), signals);
  detail::add_traces(job, signals);
  detail::add_gpus(job, on_read, signals);
  return signals;
}

}  // namespace unidle::diagnose
