// Reads the record of an active run.
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <set>
#include <vector>

#include "unidle/base/files.h"
#include "unidle/monitor/collector.h"
#include "unidle/record/record.h"

namespace unidle::monitor {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kWindow_ns = 10 * kNsPerSecond;
constexpr std::int64_t kMostSteps = 2000;  // enough for ten seconds of 5 ms steps

bool lives(std::int64_t pid) { return pid > 0 && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM); }

void add_steps(const std::vector<record::Step>& steps, RunNow& run) {
  if (steps.empty()) {
    return;
  }
  const record::Step& last = steps.back();
  const std::int64_t end_ns = last.t_ns + last.duration_ns;
  std::int64_t begin_ns = end_ns;
  std::set<std::int64_t> processes;
  double samples = 0;
  double count = 0;
  double step_ns = 0;
  std::optional<double> input_ns;
  for (const record::Step& step : steps) {
    if (step.t_ns + step.duration_ns < end_ns - kWindow_ns) {
      continue;
    }
    begin_ns = std::min(begin_ns, step.t_ns);
    processes.insert(step.process);
    samples += static_cast<double>(step.samples);
    count += 1;
    step_ns += static_cast<double>(step.duration_ns);
    if (step.input_ns) {
      input_ns = input_ns.value_or(0) + static_cast<double>(*step.input_ns);
    }
  }
  run.step = last.index;
  if (last.loss && std::isfinite(*last.loss)) {
    run.loss = last.loss;
  }
  if (end_ns > begin_ns) {
    const double window_s = seconds(end_ns - begin_ns);
    run.samples_per_s = samples / window_s;
    run.steps_per_s = count / window_s / static_cast<double>(processes.size());
  }
  if (input_ns && step_ns > 0) {
    run.input_share = std::min(1.0, *input_ns / step_ns);
  }
}

}  // namespace

std::optional<RunNow> read_run(const fs::path& folder) {
  try {
    // Opened at each call: an open reader would keep the writer from closing its record.
    const record::Reader reader(folder);
    const auto pid = reader.meta(record::meta::kPid);
    if (reader.meta(record::meta::kEndNs) || !pid || !pid->is_number_integer() || !lives(pid->get<std::int64_t>())) {
      return std::nullopt;
    }
    RunNow run;
    run.folder = reader.folder();
    run.pid = pid->get<std::int64_t>();
    add_steps(reader.last_steps(kMostSteps), run);
    return run;
  } catch (const std::exception&) {
    return std::nullopt;  // no record, or one that is being created
  }
}

std::optional<RunNow> read_run_under_way() {
  // The link "latest" is set only when a run ends, so the newest folder names count; they begin with the time.
  std::vector<fs::path> folders;
  std::error_code failure;
  for (fs::directory_iterator entry(home_folder() / "runs", failure), end; !failure && entry != end;
       entry.increment(failure)) {
    if (!entry->is_symlink(failure)) {
      folders.push_back(entry->path());
    }
  }
  std::sort(folders.rbegin(), folders.rend());
  constexpr std::size_t kLooked = 4;
  for (std::size_t i = 0; i < std::min(folders.size(), kLooked); ++i) {
    if (auto run = read_run(folders[i])) {
      return run;
    }
  }
  return std::nullopt;
}

}  // namespace unidle::monitor
