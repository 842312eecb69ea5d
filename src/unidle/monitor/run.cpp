// Reads the record of an active run.
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "unidle/account/rate.h"
#include "unidle/base/files.h"
#include "unidle/monitor/collector.h"
#include "unidle/record/record.h"

namespace unidle::monitor {

namespace fs = std::filesystem;

namespace {

constexpr double kWindow_s = 10;
constexpr std::int64_t kMostSteps = 2000;  // enough for ten seconds of 5 ms steps

bool lives(std::int64_t pid) { return pid > 0 && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM); }

void add_steps(const std::vector<record::Step>& steps, RunNow& run) {
  if (steps.empty()) {
    return;
  }
  const record::Step& last = steps.back();
  run.step = last.index;
  run.loss = last.loss;  // also if it is not finite: people want to know
  account::RecentRates recent = account::recent_rates(steps, kWindow_s);
  run.samples_per_s = recent.samples_per_s;
  run.steps_per_s = recent.steps_per_s;
  run.input_share = recent.input_share;
  run.processes = std::move(recent.processes);
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
