#include "unidle/slurm/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "unidle/base/layout.h"
#include "unidle/base/printable.h"
#include "unidle/base/units.h"

namespace unidle::slurm {

namespace {

using Cells = std::vector<std::string>;

bool has_no_gpu(const Row& row) { return row.job.gpus == 0 || row.job.waits(); }

Cells heads(std::initializer_list<std::string_view> titles, Language language) {
  Cells cells;
  for (const std::string_view title : titles) {
    cells.emplace_back(translate(language, title));
  }
  return cells;
}

/// Formats columns as wide as their widest cell; the last one is not padded.
std::string table(const std::vector<Cells>& rows) {
  std::vector<int> widths(rows.front().size());
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  std::string text;
  for (const Cells& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const int padding = i + 1 == row.size() ? 0 : widths[i] - display_width(row[i]) + 2;
      line += row[i] + std::string(static_cast<std::size_t>(padding), ' ');
    }
    text += line + "\n";
  }
  return text;
}

std::string time_of(const std::optional<double>& seconds) { return seconds ? format_duration(*seconds) : "-"; }
std::string share_of(const std::optional<double>& share) { return share ? format_share(*share) : "-"; }
std::string hours_of(const std::optional<double>& hours) { return hours ? format_number(*hours) : "-"; }

/// "75"; within an epoch "2.4"
std::string count_text(double count) {
  return count == std::floor(count) ? fmt::format("{:.0f}", count) : fmt::format("{:.1f}", count);
}

/// ", and needs 0:30:00 in all at that pace, more than its limit"
std::string pace_of(const Job& job, std::optional<double> whole, Language language) {
  if (!whole) {
    return "";
  }
  const std::string time = format_duration(*whole);
  const bool over = job.limit_s && *whole > *job.limit_s;
  return (job.runs() ? translate(language, ", and needs {} in all at that pace", time)
                     : translate(language, ", and would have needed {} in all at that pace", time)) +
         (over ? std::string(translate(language, ", more than its limit")) : "");
}

std::string asked_text(const Job& job, Language language) {
  const std::string nodes =
      job.nodes == 1 ? std::string(translate(language, "1 node")) : translate(language, "{} nodes", job.nodes);
  if (!job.memory_bytes) {
    return translate(language, "Asked for: {}, {} CPUs, {} GPUs.", nodes, job.cpus, job.gpus);
  }
  const auto memory = static_cast<std::uint64_t>(*job.memory_bytes);
  return translate(language, "Asked for: {}, {} CPUs, {} GPUs, {}.", nodes, job.cpus, job.gpus, format_bytes(memory));
}

/// "Used: GPU 62 % busy; 3.1 of 8 CPUs; 9.4 GiB of memory at most."
std::string used_text(const Job& job, const Use& use, Language language) {
  std::vector<std::string> parts;
  if (use.gpu) {
    parts.push_back(translate(language, "GPU {} busy", format_share(*use.gpu)));
  }
  if (use.cpus) {
    parts.push_back(job.known() ? translate(language, "{} of {} CPUs", format_number(*use.cpus), job.cpus)
                                : translate(language, "{} CPUs", format_number(*use.cpus)));
  }
  if (use.peak_memory_bytes) {
    const std::string bytes = format_bytes(static_cast<std::uint64_t>(*use.peak_memory_bytes));
    parts.push_back(job.nodes > 1 ? translate(language, "{} of memory at most on a node", bytes)
                                  : translate(language, "{} of memory at most", bytes));
  }
  return parts.empty()
             ? ""
             : translate(language, "Used: {}.", fmt::format("{}", fmt::join(parts, translate(language, "; ")))) + "\n";
}

std::string now_text(const monitor::RunNow& now, Language language) {
  std::vector<std::string> parts = {translate(language, "step {}", *now.step)};
  if (now.samples_per_s) {
    parts.push_back(translate(language, "{} samples/s", format_number(*now.samples_per_s)));
  }
  if (now.input_share) {
    parts.push_back(translate(language, "{} of the time waiting for input", format_share(*now.input_share)));
  }
  return translate(language, "Now: {}.", fmt::format("{}", fmt::join(parts, translate(language, ", "))));
}

std::string progress_text(const Row& row, Language language) {
  const Progress& progress = *row.progress;
  const std::string pace = pace_of(row.job, row.expected(), language);
  const std::string_view unit = translate(language, progress.of);
  const std::string done = count_text(progress.done);
  const std::string total = count_text(progress.total);
  return row.job.runs() ? translate(language, "It has come to {} {} of {}{}.", unit, done, total, pace)
                        : translate(language, "It came to {} {} of {}{}.", unit, done, total, pace);
}

int order(const Job& job) { return job.runs() ? 0 : job.waits() ? 1 : 2; }

}  // namespace

std::string status_table(std::vector<Row> rows, Language language) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return order(a.job) < order(b.job); });
  std::vector<Cells> cells = {heads({"ID", "NAME", "STATE", "TIME", "LIMIT", "DONE", "IN ALL", "NODES", "GPUS", "STEP",
                                     "SAMPLES/S", "INPUT", "REASON"},
                                    language)};
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

Totals totals_of(const std::vector<Row>& rows) {
  Totals totals;
  for (const Row& row : rows) {
    if (has_no_gpu(row)) {
      continue;
    }
    const auto waste = wasted_gpu_hours(row.job, row.use);
    totals.gpu_hours += gpu_hours(row.job).value_or(0);
    totals.wasted_gpu_hours += waste.value_or(0);
    totals.unknown += waste ? 0 : 1;
  }
  return totals;
}

std::string top_table(std::vector<Row> rows, Language language, double price) {
  std::erase_if(rows, has_no_gpu);
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return wasted_gpu_hours(a.job, a.use).value_or(-1) > wasted_gpu_hours(b.job, b.use).value_or(-1);
  });
  std::vector<Cells> cells = {heads({"ID", "NAME", "STATE", "TIME", "GPUS", "GPU", "GPU HOURS", "WASTED"}, language)};
  for (const Row& row : rows) {
    cells.push_back({row.job.id, printable_line(row.job.name), row.job.state, time_of(row.job.elapsed_s),
                     std::to_string(row.job.gpus), share_of(row.use.gpu), hours_of(gpu_hours(row.job)),
                     hours_of(wasted_gpu_hours(row.job, row.use))});
  }
  const auto [held, wasted, unknown] = totals_of(rows);
  std::string text = table(cells);
  text += translate(language, "{} GPU hours were held, {} of them wasted", format_number(held), format_number(wasted));
  if (price > 0) {
    text += translate(language, "; at {} an hour that is {} and {}", format_number(price), format_number(held * price),
                      format_number(wasted * price));
  }
  if (unknown == 1) {
    text += translate(language,
                      "; of 1 job nobody knows how busy the GPUs were: those of unidle slurm submit are recorded");
  } else if (unknown > 1) {
    text += translate(language,
                      "; of {} jobs nobody knows how busy the GPUs were: those of unidle slurm submit are recorded",
                      unknown);
  }
  return text + "\n";
}

std::string job_text(const Row& row, Language language) {
  const Job& job = row.job;
  std::string text;
  if (!job.known()) {
    text = translate(language, "Job {}, by its files alone.", job.id) + "\n";
  } else {
    text = translate(language, "Job {} {}: {}.", job.id, printable_line(job.name),
                     printable_line(state_text(job, language))) +
           "\n" + asked_text(job, language) + "\n";
  }
  text += used_text(job, row.use, language);
  if (row.now && row.now->step) {
    text += now_text(*row.now, language) + "\n";
  }
  if (row.progress) {
    text += progress_text(row, language) + "\n";
  }
  if (job.runs() && job.limit_s && job.elapsed_s) {
    text += translate(language, "Its time is over in {}.", format_duration(*job.limit_s - *job.elapsed_s)) + "\n";
  }
  return text;
}

}  // namespace unidle::slurm
