// The cost of monitoring: CPU time of a snapshot of the devices, and of one with the host, its processes and no run.
//
// The peer is the naive way of nvidia-smi and top, which read everything at each interval. It is simulated by
// requesting everything (slow readings, host and processes) ten times per second.
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "unidle/base/files.h"
#include "unidle/telemetry/gpu.h"
#include "unidle/telemetry/process_use.h"
#include "unidle/telemetry/sampler.h"

namespace {

using namespace unidle;

constexpr double kRate_hz = 10;

double cpu_s() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

/// CPU seconds of one call.
template <typename Work>
double cost_of(int calls, Work work) {
  work();
  const double start = cpu_s();
  for (int i = 0; i < calls; ++i) {
    work();
  }
  return (cpu_s() - start) / calls;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What watching costs");
  bool as_json = false;
  int calls = 300;
  std::string library;
  app.add_flag("--json", as_json);
  app.add_option("--calls", calls);
  app.add_option("--nvml", library, "library to read, e.g. the fake one (default: this machine's)");
  CLI11_PARSE(app, argc, argv);
  const TemporaryFolder folder;
  if (!library.empty()) {
    std::ofstream(folder.path() / "script")
        << "count 1\nname GPU\nmemory 100:50\nutilisation 50\npower 100000\npower_limit 700000\nenergy 1000\n"
           "temperature 50\nclock 1000\nthrottle 0\npcie 5:16:5:16\npcie_rx 10\ngpm 1\ngpm.2 50\nprocesses none\n";
    ::setenv("UNIDLE_NVML_LIBRARY", library.c_str(), 1);
    ::setenv("UNIDLE_FAKE_NVML_SCRIPT", (folder.path() / "script").c_str(), 1);
  }
  telemetry::GpuInventory gpus = telemetry::find_gpus();
  unsigned devices = 0;
  for (const auto& reader : gpus.readers) {
    devices += static_cast<unsigned>(reader->facts().size());
  }
  std::int64_t t_ns = 0;
  const auto read_gpus = [&](bool slow) {
    t_ns += kNsPerSecond / 10;
    for (const auto& reader : gpus.readers) {
      reader->read(t_ns, slow);
    }
  };
  const auto host = telemetry::host_source();
  telemetry::ProcessUseReader tree(::getpid());
  const double fast_s = cost_of(calls, [&] { read_gpus(false); });
  const double slow_s = cost_of(calls, [&] { read_gpus(true); });
  const double host_s = cost_of(calls, [&] {
    t_ns += kNsPerSecond;
    host->read(t_ns, [](const telemetry::Reading&) {});
  });
  const double tree_s = cost_of(calls, [&] { tree.read(); });
  const double ours = (kRate_hz - 1) * fast_s + slow_s;
  const double base = host_s + tree_s;
  const double peer = kRate_hz * (slow_s + host_s + tree_s);
  if (as_json) {
    fmt::print("{}\n",
               nlohmann::json{{"name", "monitor_cost"},
                              {"unit", "share of a core at 10 Hz"},
                              {"ours", ours + base},
                              {"gpus", devices},
                              {"per_gpu", devices > 0 ? nlohmann::json(ours / devices) : nlohmann::json(nullptr)},
                              {"peers", {{"everything_each_time", peer}}},
                              {"ratio", peer / (ours + base)}}
                   .dump(2));
    return 0;
  }
  fmt::print("watching at {:.0f} Hz, share of one core\n", kRate_hz);
  if (devices > 0) {
    fmt::print("  each of {} GPU(s)        {:8.4f} %\n", devices, ours / devices * 100);
  } else {
    fmt::print("  no GPU here; --nvml LIBRARY reads another\n");
  }
  fmt::print("  host, once a second     {:8.4f} %\n", host_s * 100);
  fmt::print("  processes, the same     {:8.4f} %\n", tree_s * 100);
  fmt::print("  everything each time    {:8.4f} %\n", peer * 100);
}
