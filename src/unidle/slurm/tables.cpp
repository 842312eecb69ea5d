#include "unidle/slurm/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/printable.h"
#include "unidle/base/units.h"

namespace unidle::slurm {

namespace {

/// Columns as wide as their widest cell; the last one is not padded.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    text += line + "\n";
  }
  return text;
}

std::string time_of(const std::optional<double>& seconds) { return seconds ? format_duration(*seconds) : "-"; }
std::string share_of(const std::optional<double>& share) { return share ? format_share(*share) : "-"; }
std::string hours_of(const std::optional<double>& hours) { return hours ? format_number(*hours) : "-"; }

/// "75", of an epoch under way "2.4"
std::string count_text(double count) {
  return count == std::floor(count) ? fmt::format("{:.0f}", count) : fmt::format("{:.1f}", count);
}

/// ", and needs 0:30:00 in all at that pace, more than its limit"
std::string pace_of(const Job& job, std::optional<double> whole) {
  if (!whole) {
    return "";
  }
  const bool over = job.limit_s && *whole > *job.limit_s;
  return fmt::format("{} {} in all at that pace{}", job.runs() ? ", and needs" : ", and would have needed",
                     format_duration(*whole), over ? ", more than its limit" : "");
}

int order(const Job& job) { return job.runs() ? 0 : job.waits() ? 1 : 2; }

}  // namespace

std::string status_table(std::vector<Row> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return order(a.job) < order(b.job); });
  std::vector<std::vector<std::string>> cells = {{"ID", "NAME", "STATE", "TIME", "LIMIT", "DONE", "IN ALL", "NODES",
                                                  "GPUS", "STEP", "SAMPLES/S", "INPUT", "REASON"}};
  for (const Row& row : rows) {
    const auto& now = row.now;
    cells.push_back({row.job.id, printable_line(row.job.name), row.job.state,
                     row.job.waits() ? "-" : time_of(row.job.elapsed_s), time_of(row.job.limit_s),
                     row.progress ? format_share(row.progress->share()) : "-", time_of(row.expected()),
                     std::to_string(row.job.nodes), std::to_string(row.job.gpus),
                     now && now->step ? std::to_string(*now->step) : "-",
                     now && now->samples_per_s ? format_number(*now->samples_per_s) : "-",
                     now ? share_of(now->input_share) : "-", printable_line(row.job.runs() ? "" : row.job.reason)});
  }
  return table(cells);
}

std::string top_table(std::vector<Row> rows) {
  std::erase_if(rows, [](const Row& row) { return row.job.gpus == 0 || row.job.waits(); });
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return wasted_gpu_hours(a.job, a.use).value_or(-1) > wasted_gpu_hours(b.job, b.use).value_or(-1);
  });
  std::vector<std::vector<std::string>> cells = {{"ID", "NAME", "STATE", "TIME", "GPUS", "GPU", "GPU HOURS", "WASTED"}};
  double held = 0;
  double wasted = 0;
  std::size_t unknown = 0;
  for (const Row& row : rows) {
    const auto waste = wasted_gpu_hours(row.job, row.use);
    held += gpu_hours(row.job).value_or(0);
    wasted += waste.value_or(0);
    unknown += waste ? 0 : 1;
    cells.push_back({row.job.id, printable_line(row.job.name), row.job.state, time_of(row.job.elapsed_s),
                     std::to_string(row.job.gpus), share_of(row.use.gpu), hours_of(gpu_hours(row.job)),
                     hours_of(waste)});
  }
  std::string text = table(cells);
  text += fmt::format("{} GPU hours were held, {} of them wasted", format_number(held), format_number(wasted));
  if (unknown > 0) {
    text += fmt::format("; of {} {} nobody knows how busy the GPUs were: unidle slurm submit records it", unknown,
                        unknown == 1 ? "job" : "jobs");
  }
  return text + "\n";
}

std::string job_text(const Row& row) {
  const Job& job = row.job;
  std::string text;
  if (!job.known()) {
    text = fmt::format("Job {}, by its files alone.\n", job.id);
  } else {
    text = fmt::format("Job {} {}: {}.\n", job.id, printable_line(job.name), printable_line(state_text(job)));
    text += fmt::format("Asked for: {} {}, {} CPUs, {} GPUs{}.\n", job.nodes, job.nodes == 1 ? "node" : "nodes",
                        job.cpus, job.gpus,
                        job.memory_bytes ? ", " + format_bytes(static_cast<std::uint64_t>(*job.memory_bytes)) : "");
  }
  std::string used;
  if (row.use.gpu) {
    used += fmt::format(" GPU {} busy;", format_share(*row.use.gpu));
  }
  if (row.use.cpus) {
    used += job.known() ? fmt::format(" {} of {} CPUs;", format_number(*row.use.cpus), job.cpus)
                        : fmt::format(" {} CPUs;", format_number(*row.use.cpus));
  }
  if (row.use.peak_memory_bytes) {
    used +=
        fmt::format(" {} of memory at most{};", format_bytes(static_cast<std::uint64_t>(*row.use.peak_memory_bytes)),
                    job.nodes > 1 ? " on a node" : "");
  }
  if (!used.empty()) {
    used.back() = '.';
    text += "Used:" + used + "\n";
  }
  if (row.now && row.now->step) {
    text += fmt::format("Now: step {}", *row.now->step);
    if (row.now->samples_per_s) {
      text += fmt::format(", {} samples/s", format_number(*row.now->samples_per_s));
    }
    if (row.now->input_share) {
      text += fmt::format(", {} of the time waiting for input", format_share(*row.now->input_share));
    }
    text += ".\n";
  }
  if (row.progress) {
    const auto whole = row.expected();
    text += fmt::format("It {} to {} {} of {}{}.\n", job.runs() ? "has come" : "came", row.progress->of,
                        count_text(row.progress->done), count_text(row.progress->total), pace_of(job, whole));
  }
  if (job.runs() && job.limit_s && job.elapsed_s) {
    text += fmt::format("Its time is over in {}.\n", format_duration(*job.limit_s - *job.elapsed_s));
  }
  return text;
}

}  // namespace unidle::slurm
