// unidle-train: trains a workload with the LibTorch engine.
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/base/standard_streams.h"
#include "unidle/base/terminal.h"
#include "unidle/base/units.h"
#include "unidle/cli/parser_output.h"
#include "unidle/train/device.h"
#include "unidle/train/machine_speed.h"
#include "unidle/train/trainer.h"
#include "workloads/registry.h"

namespace {

using namespace unidle;

std::atomic<bool> g_stop{false};

/// The first Ctrl-C ends the run after its step; the second one ends the process.
void on_interrupt(int) {
  g_stop.store(true, std::memory_order_relaxed);
  std::signal(SIGINT, SIG_DFL);
}

/// Keeps what a step frees for the next step: tensors of some megabytes would otherwise go back to the kernel and be
/// faulted in, page by page, in every step.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest that glibc takes
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
}

/// Threads that wait for others spin for some microseconds, then sleep. The regions of a CPU step lie closer together
/// than a thread takes to wake: on two quiet cores the step is 1.6 times as fast as with none. Longer spinning gains
/// nothing there, and where something else runs on the CPUs a spinning thread holds the core that the others need:
/// beside one busy process this count costs 0.13 of the rate, ten times as much 0.55. OpenMP reads its environment
/// while the program is loaded, so it is loaded again; `argv` goes on as it is.
void let_waiting_threads_spin_briefly(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) {
    return;
  }
  std::error_code failure;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (!failure && ::setenv("GOMP_SPINCOUNT", "1000", 1) == 0) {
    ::execv(self.c_str(), argv);  // on failure: as it was
  }
}

struct Options {
  std::string config;
  std::vector<std::string> overrides;
  std::string format = "text";
  std::string resume;
  bool prepare = false;
  bool quiet = false;
};

void add_options(CLI::App& app, Options& options) {
  app.add_option("WORKLOAD.yaml", options.config, "Configuration")->required();
  app.add_option("KEY=VALUE", options.overrides, "Settings that differ from the file, e.g. batch.size=8");
  app.add_option("--format", options.format, "Of the answer on stdout")->check(CLI::IsMember({"text", "json"}));
  app.add_option("--resume", options.resume, "Checkpoint to go on from, or the folder that it lies in");
  app.add_flag("--prepare", options.prepare, "Make the data and end");
  app.add_flag("-q,--quiet", options.quiet, "No progress on stderr");
}

std::unique_ptr<Progress> make_progress(const Options& options, std::uint64_t total) {
  return options.quiet ? nullptr : std::make_unique<Progress>("training", total);
}

int run(const Options& options) {
  train::Events events;
  const train::Config config = train::Config::load(options.config, options.overrides);
  const train::WorkloadKind& kind = workloads::find_workload(config);
  if (options.prepare) {
    print_to(stdout, "{}\n", kind.prepare(config));
    return 0;
  }
  const at::Device device = train::choose_device(config.text("device"));
  train::configure_torch(config);
  const std::unique_ptr<train::Workload> workload = kind.open(config, device);

  std::unique_ptr<Progress> progress;
  train::TrainOptions train_options;
  if (!options.resume.empty()) {
    train_options.resume = options.resume;
  }
  train_options.stop = &g_stop;
  train_options.on_progress = [&](std::int64_t samples, std::int64_t total, double loss) {
    if (!progress) {
      progress = make_progress(options, static_cast<std::uint64_t>(total));
    }
    if (progress) {
      progress->update(static_cast<std::uint64_t>(samples), "loss " + format_number(loss));
    }
  };
  std::signal(SIGINT, on_interrupt);
  train::Trainer trainer(*workload, config, device, events, train_options);
  const train::Summary summary = trainer.run();
  progress.reset();
  print_to(stdout, "{}", options.format == "json" ? train::to_json(summary) + "\n" : train::to_text(summary));
  return summary.stopped ? 128 + SIGINT : 0;
}

int out_of_memory() {
  print_to(stderr,
           "unidle-train: out of memory (a smaller batch.size, model.width or loader.prefetch_factor needs less)\n");
  return 1;
}

/// What was asked for, with its output out.
int parse_and_run(int argc, char** argv) {
  CLI::App app("Trains a workload with unidle's C++ engine.", "unidle-train");
  Options options;
  add_options(app, options);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("unidle-train: {} (see unidle-train --help)\n", error.what());
  });
  int code = 0;
  try {
    if (argc > 1 && std::string_view(argv[1]) == "speed") {  // for `unidle check --speed`
      code = train::speed_main(argc - 2, argv + 2);
    } else {
      app.parse(argc, argv);
      code = run(options);
    }
  } catch (const CLI::ParseError& error) {
    code = cli::said_by_parser(app, error);
  }
  flush_output();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_streams();
  let_waiting_threads_spin_briefly(argv);
  try {
    init_log();
    keep_freed_memory();
    return parse_and_run(argc, argv);
  } catch (const Error& error) {
    say_error("unidle-train", error.what());
    return error.exit_code();
  } catch (const std::filesystem::filesystem_error& failure) {
    const Error error = file_system_error(failure);
    say_error("unidle-train", error.what());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    if (text.find("out of memory") != std::string::npos || text.find("allocate memory") != std::string::npos) {
      return out_of_memory();  // torch's allocators, on a GPU and on the host
    }
    say_error("unidle-train", text.substr(0, text.find('\n')));
    return 1;
  }
}
