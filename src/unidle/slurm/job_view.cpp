#include "unidle/slurm/job_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "unidle/account/readings.h"
#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/numbers.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/nodes.h"
#include "unidle/logs/job_files.h"
#include "unidle/monitor/collector.h"
#include "unidle/record/record.h"
#include "unidle/slurm/job_script.h"

namespace unidle::slurm {

namespace fs = std::filesystem;

namespace {

constexpr double kHeadroom = 1.25;   // memory requested, relative to the peak in use
constexpr double kMuchUnused = 0.5;  // of the request: below this share a smaller one is proposed
// No training process uses less on average: such a value is of a shell, or was not measured.
constexpr double kLeastCpus = 0.01;
constexpr double kLeastFailed_s = 60;  // a job that failed sooner has not shown what it needs
constexpr double kLeastMemory = 16 * 0x1p20;

void add(std::optional<double>& sum, std::optional<double> value) {
  if (value) {
    sum = sum.value_or(0) + *value;
  }
}

void raise(std::optional<double>& most, std::optional<double> value) {
  if (value) {
    most = std::max(most.value_or(*value), *value);
  }
}

template <typename Number>
nlohmann::ordered_json or_null(const std::optional<Number>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}
nlohmann::ordered_json or_null(const std::string& value) {
  return value.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
}

std::optional<monitor::RunNow> run_of(const JobFiles& files) {
  for (const fs::path& record : files.records) {
    try {
      if (auto now = monitor::read_run(record)) {
        return now;
      }
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the record is still being created
    }
  }
  return std::nullopt;
}

/// The path that Slurm reports, otherwise the one that our scripts use: accounting does not report it.
fs::path output_of(const Job& job, const fs::path& folder) {
  return job.output.empty() ? folder / fmt::format("gpu_run_{}_detailed.log", job.id_of_files()) : job.output;
}

}  // namespace

std::vector<fs::path> records_of(const std::string& id, const fs::path& folder) {
  const std::string first = "unidle_" + id;
  const std::string next = first + "_again";
  std::optional<int> latest;  // how often the job had been requeued
  std::vector<fs::path> records;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    const auto again = name == first            ? std::optional(0)
                       : name.starts_with(next) ? parse_number<int>(name.substr(next.size()))
                                                : std::nullopt;
    if (!again || *again < latest.value_or(0)) {
      continue;
    }
    if (std::vector<fs::path> found = diagnose::records_of_nodes(entry->path()); !found.empty()) {
      records = std::move(found);
      latest = again;
    }
  }
  return records;
}

JobFiles files_of(const Job& job, const fs::path& results) {
  fs::path folder = results_in(job.comment);
  folder = folder.empty() ? results : folder;
  const std::string id = job.id_of_files();
  if (id.empty()) {
    return {};
  }
  JobFiles files{records_of(id, folder), {}, output_of(job, folder)};
  std::error_code ignored;
  if (files.records.empty() && fs::is_directory(folder, ignored)) {
    try {
      files.logs = logs::find_job_files(id, folder).all();
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): nothing has the id in its name
    }
  }
  return files;
}

namespace {

void drop_unmeasured(Use& use) {
  if (use.node_cpus.value_or(0) < kLeastCpus) {
    use.cpus.reset();
    use.node_cpus.reset();
  }
  if (use.peak_memory_bytes.value_or(0) < kLeastMemory) {
    use.peak_memory_bytes.reset();
  }
}

}  // namespace

Use use_of(const Job& job, const JobFiles& files) {
  Use use;
  double gpu = 0;
  std::size_t nodes = 0;
  for (const fs::path& path : files.records) {
    try {
      const account::RunData run = account::load_series(
          record::Reader(path), {record::series::kTreeCpu, record::series::kTreeMemory, record::series::kGpuUtil});
      const auto cpus = account::mean_over_run(run, record::series::kTreeCpu);
      add(use.cpus, cpus);
      raise(use.node_cpus, cpus);
      raise(use.peak_memory_bytes, account::max_over_run(run, record::series::kTreeMemory));
      if (const auto mean = account::mean_over_run(run, record::series::kGpuUtil)) {
        gpu += *mean;
        ++nodes;
      }
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): an unreadable record is skipped
    }
  }
  if (nodes > 0) {
    use.gpu = gpu / static_cast<double>(nodes);
  }
  if (!use.cpus && job.cpu_time_s && job.elapsed_s.value_or(0) > 0) {
    use.cpus = *job.cpu_time_s / *job.elapsed_s;
    use.node_cpus = use.cpus;  // an upper bound: the distribution over nodes is unknown
  }
  raise(use.peak_memory_bytes, job.peak_memory_bytes);  // both only sample, so the larger value counts
  drop_unmeasured(use);
  if (job.out_of_memory()) {
    use.peak_memory_bytes.reset();  // the peak that ended the job was not observed
  }
  return use;
}

std::optional<double> gpu_hours(const Job& job) {
  return job.gpus > 0 && job.elapsed_s ? std::optional(*job.elapsed_s / 3600 * job.gpus) : std::nullopt;
}

std::optional<double> wasted_gpu_hours(const Job& job, const Use& use) {
  const auto held = gpu_hours(job);
  return held && use.gpu ? std::optional(*held * (1 - *use.gpu)) : std::nullopt;
}

namespace {

/// "0:12:31 of 4:00:00"
std::string time_text(const Job& job, Language language) {
  if (!job.elapsed_s) {
    return std::string(translate(language, "an unknown time"));
  }
  const std::string elapsed = format_duration(*job.elapsed_s);
  return job.limit_s ? translate(language, "{} of {}", elapsed, format_duration(*job.limit_s)) : elapsed;
}

/// The reason why the job ended, as a clause; empty when its state says all.
std::string end_text(const Job& job, Language language) {
  if (job.out_of_memory()) {
    return std::string(translate(language, ": it used more memory than it had asked for"));
  }
  std::string text;
  if (job.exit_signal != 0) {
    text = translate(language, ", signal {}", job.exit_signal);
  } else if (job.exit_code != 0) {
    text = translate(language, ", exit code {}", job.exit_code);
  }
  if (job.state == "TIMEOUT") {
    text += translate(language, ": its time was over before it was done");
  } else if (job.state == "NODE_FAIL") {
    text += translate(language, ": a node went away, which is no fault of the program");
  }
  return text;
}

}  // namespace

std::string state_text(const Job& job, Language language) {
  if (job.waits()) {
    return job.reason.empty() ? std::string(translate(language, "waits"))
                              : translate(language, "waits: {}", job.reason);
  }
  const std::string time = time_text(job, language);
  const std::string& nodes = job.node_list;
  if (job.runs()) {
    return nodes.empty() ? translate(language, "{} for {}", job.state, time)
                         : translate(language, "{} for {} on {}", job.state, time, nodes);
  }
  return (nodes.empty() ? translate(language, "{} after {}", job.state, time)
                        : translate(language, "{} after {} on {}", job.state, time, nodes)) +
         end_text(job, language);
}

namespace {

double gibibytes(double bytes) { return std::max(1.0, std::ceil(bytes / 0x1p30)); }

/// Whether the job lived long enough to show what it needs.
bool shows_its_needs(const Job& job) { return !job.failed() || job.elapsed_s.value_or(0) >= kLeastFailed_s; }

std::optional<LineChange> of_cpus(const Job& job, const Use& use, std::optional<int> workers, Language language) {
  const int nodes = std::max(1, job.nodes);
  const int tasks = std::max(1, job.tasks_per_node);
  const int cpus = job.cpus / nodes / tasks;
  if (workers && cpus > 0 && *workers + 1 > cpus) {
    return LineChange{
        fmt::format("--cpus-per-task={}", *workers + 1),
        translate(language, "{} loader workers and the training process, on {} CPUs now", *workers, cpus)};
  }
  const auto used = use.node_cpus ? std::optional(*use.node_cpus / tasks) : std::nullopt;
  if (!workers && used && cpus > 1 && *used < kMuchUnused * cpus && shows_its_needs(job)) {
    const int needed = std::max(1, static_cast<int>(std::ceil(*used * kHeadroom)));
    if (needed < cpus) {
      return LineChange{fmt::format("--cpus-per-task={}", needed),
                        translate(language, "{} of {} CPUs were in use", format_number(*used), cpus)};
    }
  }
  return std::nullopt;
}

/// Killed most often for its memory, whose peak the samples of every half minute may have missed.
bool was_killed(const Job& job) {
  return job.failed() && (job.exit_signal == SIGKILL || job.exit_code == 128 + SIGKILL);
}

std::optional<LineChange> of_memory(const Job& job, const Use& use, Language language) {
  const int nodes = std::max(1, job.nodes);
  const auto bytes_text = [](double bytes) { return format_bytes(static_cast<std::uint64_t>(bytes)); };
  if (!job.memory_bytes) {
    return std::nullopt;
  }
  const double had = *job.memory_bytes / nodes;
  if (job.out_of_memory()) {
    return LineChange{fmt::format("--mem={:.0f}G", gibibytes(had * 2)),
                      translate(language, "{} were not enough", bytes_text(had))};
  }
  if (!use.peak_memory_bytes || *use.peak_memory_bytes >= kMuchUnused * had || !shows_its_needs(job) ||
      was_killed(job)) {
    return std::nullopt;
  }
  const double needed = gibibytes(*use.peak_memory_bytes * kHeadroom);
  if (needed * 0x1p30 >= had) {
    return std::nullopt;
  }
  const std::string most = bytes_text(*use.peak_memory_bytes);
  return LineChange{fmt::format("--mem={:.0f}G", needed),
                    nodes > 1 ? translate(language, "{} was the most in use on a node, of {}", most, bytes_text(had))
                              : translate(language, "{} was the most in use, of {}", most, bytes_text(had))};
}

std::optional<LineChange> of_time(const Row& row, Language language) {
  const auto whole = row.expected();
  if (!whole || !row.job.limit_s || *whole <= *row.job.limit_s || (row.job.state != "TIMEOUT" && !row.job.runs())) {
    return std::nullopt;
  }
  const double needed = std::ceil(*whole * kHeadroom / 60) * 60;
  return LineChange{fmt::format("--time={}", format_duration(needed)),
                    translate(language, "{} in all at the pace so far, of {}", format_duration(*whole),
                              format_duration(*row.job.limit_s))};
}

}  // namespace

std::vector<LineChange> proposals(const Row& row, std::optional<int> workers, Language language) {
  std::vector<LineChange> lines;
  for (auto& one :
       {of_cpus(row.job, row.use, workers, language), of_memory(row.job, row.use, language), of_time(row, language)}) {
    if (one) {
      lines.push_back(*one);
    }
  }
  return lines;
}

Row row_of(Job job, const JobFiles& files) {
  Row row{std::move(job), {}, std::nullopt, std::nullopt};
  if (row.job.failed() && !row.job.out_of_memory()) {
    row.job.step_out_of_memory = killed_for_memory(files.output);
  }
  row.use = use_of(row.job, files);
  if (row.job.runs()) {
    row.now = run_of(files);
  }
  if (row.job.runs() || row.job.failed()) {
    row.progress = progress_at_end_of(files.output);
  }
  return row;
}

nlohmann::ordered_json to_json(const Row& row) {
  const auto& [job, use, now, progress] = row;
  nlohmann::ordered_json document = {
      {"id", job.id},
      {"name", job.name},
      {"user", or_null(job.user)},
      {"partition", or_null(job.partition)},
      {"state", job.state},
      {"reason", or_null(job.reason)},
      {"submitted", or_null(job.submitted)},
      {"started", or_null(job.started)},
      {"ended", or_null(job.ended)},
      {"elapsed_s", or_null(job.elapsed_s)},
      {"limit_s", or_null(job.limit_s)},
      {"nodes", job.nodes},
      {"node_list", or_null(job.node_list)},
      {"cpus", job.cpus},
      {"gpus", job.gpus},
      {"memory_bytes", or_null(job.memory_bytes)},
      {"exit", {{"code", job.exit_code}, {"signal", job.exit_signal}}},
      {"use",
       {{"gpu", or_null(use.gpu)}, {"cpus", or_null(use.cpus)}, {"peak_memory_bytes", or_null(use.peak_memory_bytes)}}},
      {"gpu_hours", or_null(gpu_hours(job))},
      {"wasted_gpu_hours", or_null(wasted_gpu_hours(job, use))}};
  document["out_of_memory"] = job.out_of_memory();
  document["progress"] = nullptr;
  if (progress) {
    document["progress"] = {{"of", progress->of}, {"done", progress->done}, {"total", progress->total}};
  }
  document["expected_s"] = or_null(row.expected());
  if (now) {
    document["step"] = or_null(now->step);
    document["samples_per_s"] = or_null(now->samples_per_s);
    document["input_share"] = or_null(now->input_share);
  }
  return document;
}

}  // namespace unidle::slurm
