// The cost of observation: one step in the training thread, and the sampler as a share of one core. Prints one JSON
// document per line. Peers: for an event, a clock_gettime call (the cost of timing it without recording); for the
// sampler, none.
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/base/stats.h"
#include "unidle/probe/ring_reader.h"
#include "unidle/probe/unidle_probe.h"
#include "unidle/telemetry/host.h"
#include "unidle/telemetry/sampler.h"

namespace {

constexpr int kRounds = 50;
constexpr int kEventsPerRound = 10'000;

/// Time of one call in ns, median over rounds.
template <typename Work, typename Between>
double median_ns(Work work, Between between) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t begin = unidle::system_clock().now_ns();
    for (int i = 0; i < kEventsPerRound; ++i) {
      work(static_cast<std::uint64_t>(i));
    }
    rounds.push_back(static_cast<double>(unidle::system_clock().now_ns() - begin) / kEventsPerRound);
    between();
  }
  return unidle::median(rounds);
}

double step_ns() {
  const unidle::TemporaryFolder folder;
  ::setenv("UNIDLE_PROBE_DIR", folder.path().c_str(), 1);
  unidle_probe* probe = unidle_probe_open("train");
  std::string problem;
  const auto reader = unidle::probe::RingReader::open(folder.path() / (std::to_string(::getpid()) + ".ring"), problem);
  if (probe == nullptr || reader == nullptr) {
    fmt::print(stderr, "no ring: {}\n", problem);
    std::exit(1);
  }
  std::vector<unidle::probe::Slot> events;
  const double cost = median_ns(
      [&](std::uint64_t i) {
        const unidle_step step{i, 1, i, 32, 32 * i, 0.5, 0, 127, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0};
        unidle_probe_step(probe, &step);
      },
      [&] {
        events.clear();
        reader->drain(events);
        reader->release();
      });
  if (unidle_probe_dropped(probe) > 0) {
    fmt::print(stderr, "events were dropped: the figure would be that of dropping\n");
    std::exit(1);
  }
  unidle_probe_close(probe);
  return cost;
}

double process_cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Share of one core that the sampler uses, with a tree of `children` processes in addition to ours.
double sampler_share(int children) {
  std::vector<pid_t> pids;
  for (int i = 0; i < children; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::pause();
      ::_exit(0);
    }
    pids.push_back(pid);
  }
  const double before = process_cpu_s();
  const std::int64_t begin = unidle::system_clock().now_ns();
  {
    std::vector<std::unique_ptr<unidle::telemetry::Source>> sources;
    sources.push_back(unidle::telemetry::process_tree_source(::getpid()));
    sources.push_back(unidle::telemetry::host_source());
    const unidle::telemetry::Sampler sampler(unidle::system_clock(), unidle::telemetry::kSampleInterval_ns,
                                             std::move(sources), [](const unidle::telemetry::Reading&) {});
    ::sleep(10);
  }
  const double share = (process_cpu_s() - before) / unidle::seconds(unidle::system_clock().now_ns() - begin);
  for (const pid_t pid : pids) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  return share;
}

void print(const std::string& name, const std::string& unit, double ours, const nlohmann::json& peers) {
  const std::string machine = unidle::telemetry::read_host_facts().cpu_model;
  nlohmann::json ratio = nullptr;
  if (!peers.empty()) {
    ratio = ours / peers.begin()->get<double>();
  }
  const nlohmann::json document = {{"name", name},   {"unit", unit},   {"ours", ours},
                                   {"peers", peers}, {"ratio", ratio}, {"machine", machine}};
  fmt::print("{}\n", document.dump());
}

}  // namespace

int main() {
  volatile std::uint64_t sink = 0;
  const double clock = median_ns([&](std::uint64_t) { sink = unidle_probe_now_ns(); }, [] {});
  print("probe_step", "ns/step", step_ns(), {{"clock_gettime", clock}});
  print("sampler_9_processes", "share of one core", sampler_share(8), nlohmann::json::object());
  print("sampler_33_processes", "share of one core", sampler_share(32), nlohmann::json::object());
  return 0;
}
