// unidle-train: trains a workload with the LibTorch engine.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/version.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>

#include "engine/export_command.h"
#include "engine/grid.h"
#include "engine/predictor_command.h"
#include "engine/process.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/base/shell.h"
#include "unidle/base/split.h"
#include "unidle/base/standard_streams.h"
#include "unidle/base/terminal.h"
#include "unidle/base/units.h"
#include "unidle/base/version.h"
#include "unidle/cli/help_format.h"
#include "unidle/cli/language_option.h"
#include "unidle/cli/option_names.h"
#include "unidle/cli/parser_output.h"
#include "unidle/train/automatic.h"
#include "unidle/train/checkpoints/weights.h"
#include "unidle/train/device.h"
#include "unidle/train/failure.h"
#include "unidle/train/machine_speed.h"
#include "unidle/train/placement.h"
#include "unidle/train/plugin.h"
#include "unidle/train/ranks/ranks.h"
#include "unidle/train/trainer.h"
#include "workloads/registry.h"

namespace {

using namespace unidle;

struct Options {
  std::string config;
  std::vector<std::string> overrides;
  std::string format = "text";
  std::string resume;
  std::string weights;
  std::string plugin;
  std::vector<std::string> grid;
  std::string tensorboard;
  bool prepare = false;
  bool quiet = false;
  std::string language;

  Language speaks() const { return format == "json" ? Language::kEnglish : cli::chosen_language(language); }
};

void add_options(CLI::App& app, Options& options) {
  app.footer(
      "Examples:\n"
      "  unidle train workloads/recsys/naive.yaml\n"
      "  unidle train workloads/recsys/naive.yaml batch.size=512 loader.workers=2\n"
      "  unidle run -- unidle train workloads/recsys/naive.yaml");
  app.add_option("WORKLOAD.yaml", options.config, "Configuration")->required();
  app.add_option("KEY=VALUE", options.overrides, "Settings that differ from the file, e.g. batch.size=8");
  app.add_option("--format", options.format, "Format of the answer on stdout")->check(CLI::IsMember({"text", "json"}));
  auto* resume =
      app.add_option("--resume", options.resume,
                     "Checkpoint to continue from, or its folder; auto: the one of the configuration, if there is one");
  app.add_option("--weights", options.weights, "Weights to start from: a torch or safetensors file, or a checkpoint")
      ->excludes(resume);
  app.add_option("--plugin", options.plugin, "Shared library with a workload (docs/adding-a-workload.md)");
  app.add_flag_callback(
      "--plugin-flags",
      [] {
        print_to(stdout, "{}\n", shell_joined(train::plugin_flags()));
        throw CLI::Success();
      },
      "Print the compiler flags for such a library, and end");
  app.add_option("--grid", options.grid,
                 "KEY=VALUE,VALUE,...: a run with each value, and a table; several: with each combination")
      ->allow_extra_args(false)
      ->excludes(resume);
  app.add_option("--tensorboard", options.tensorboard, "FOLDER for curves that TensorBoard shows")->type_name("FOLDER");
  app.add_flag("--prepare", options.prepare, "Make the data and end");
  app.add_flag("-q,--quiet", options.quiet, "No progress on stderr");
  cli::add_language_option(app, options.language);
  app.set_version_flag("--version", fmt::format("unidle {}\n{}\ntorch {}", kVersion, kBuild, TORCH_VERSION));
}

/// Prints the words that the command line accepts, one per line, for shell completion.
int print_words(const CLI::App& app) {
  for (const std::string& option : cli::option_names(app)) {
    print_to(stdout, "{}\n", option);
  }
  for (const train::Setting& setting : train::all_settings()) {
    const bool is_flag = setting.type == train::SettingType::kBool;
    const std::vector<std::string_view> values =
        is_flag ? std::vector<std::string_view>{"true", "false"} : setting.choices;
    print_to(stdout, "{}=\n", setting.name);
    for (const std::string_view value : values) {
      print_to(stdout, "{}={}\n", setting.name, value);
    }
  }
  return 0;
}

/// The live progress line on stderr.
class LiveLine {
 public:
  explicit LiveLine(Language language) : language_(language) {}

  void show(const train::Progressed& now) {
    if (!progress_) {
      progress_.emplace(std::string(translate(language_, "training")), static_cast<std::uint64_t>(now.total));
      mark(now);
    }
    if (!progress_->due()) {
      return;
    }
    const double elapsed_ns = static_cast<double>(train::Events::now_ns() - shown_ns_);
    const double rate = static_cast<double>(now.samples - shown_.samples) / elapsed_ns * 1e9;
    const double waited = static_cast<double>(now.input_wait_ns - shown_.input_wait_ns) / elapsed_ns;
    const std::string loss = now.loss ? format_number(*now.loss) : std::string(translate(language_, "not read yet"));
    progress_->update(
        static_cast<std::uint64_t>(now.samples),
        translate(language_, "loss {}, {} samples/s, input wait {:.0f} %", loss, format_number(rate), 100 * waited));
    mark(now);
  }

 private:
  void mark(const train::Progressed& now) {
    shown_ = now;
    shown_ns_ = train::Events::now_ns();
  }

  Language language_;
  std::optional<Progress> progress_;
  train::Progressed shown_;
  std::uint64_t shown_ns_ = 0;
};

/// The device of a run, and its place among the ranks.
struct Place {
  at::Device device;
  std::optional<std::string> numa;  // cpu.numa in force
  train::Ranks* ranks = nullptr;

  bool speaks() const { return ranks == nullptr || ranks->first(); }
};

/// Chooses the device and this process's CPUs, and configures torch.
Place set_up(const train::Config& config, const std::optional<train::RankPlace>& rank) {
  const train::LocalPlace local = rank ? train::LocalPlace{rank->local_rank, rank->local_world} : train::LocalPlace{};
  const at::Device device = train::choose_device(config.text("device"), local.rank);
  const train::Placed placed = train::place_process(config, device, local);
  train::configure_torch(config, local.world, placed.sharers);
  return {device, placed.in_force};
}

/// The requested checkpoint; nothing when a run starts from the beginning. With several processes the folder does not
/// change before all have read it: a step needs all of them.
std::optional<std::filesystem::path> to_resume(const Options& options, const train::Config& config) {
  if (options.resume != "auto") {
    return options.resume.empty() ? std::nullopt : std::optional<std::filesystem::path>(options.resume);
  }
  const std::filesystem::path folder = train::checkpoint_folder(config);
  const bool begun = std::filesystem::is_directory(folder) && !train::checkpoints_in(folder).empty();
  return begun ? std::optional(folder) : std::nullopt;
}

train::Summary train_workload(const Options& options, const train::Config& given, const train::WorkloadKind& kind,
                              const Place& place, train::Events& events) {
  const train::Config config = train::chosen_on(place.device, given);
  std::unique_ptr<train::GraphCapture> capture;  // created before any work is queued: it chooses the stream
  if (const std::string& mode = config.text("compile.mode"); mode == "graph" || mode == "fused") {
    capture = train::graph_capture_of(place.device);
  }
  const std::unique_ptr<train::Workload> workload = kind.open(config, place.device);
  if (workload == nullptr) {
    throw Error(ErrorCode::kInput, "workload " + kind.traits.name, "opens nothing");
  }

  if (!options.weights.empty()) {
    train::load_weights(workload->model(), train::read_weights(options.weights), options.weights);
  }

  if (!place.speaks()) {
    // All have the first one's weights; later random numbers are each process's own.
    at::manual_seed(static_cast<std::uint64_t>(config.integer("seed") + place.ranks->rank()));
  }

  std::optional<LiveLine> line;
  if (!options.quiet && place.speaks()) {
    line.emplace(cli::chosen_language(options.language));
  }
  train::TrainOptions train_options;
  train_options.numa = place.numa;
  train_options.resume = to_resume(options, config);
  train_options.stop = &engine::stop_requested();
  train_options.ranks = place.ranks;
  train_options.capture = capture.get();
  train_options.on_progress = [&](const train::Progressed& now) {
    if (line) {
      line->show(now);
    }
  };
  train::Trainer trainer(*workload, config, place.device, events, train_options);
  if (!options.tensorboard.empty() && place.speaks()) {
    events.draw_in(options.tensorboard);
  }
  engine::stop_at_signals();  // not earlier: waiting for other processes must end at once
  return trainer.run();
}

template <typename... What>
void print_answer(const Options& options, const What&... what) {
  print_to(stdout, "{}", options.format == "json" ? to_json(what...) + "\n" : to_text(what..., options.speaks()));
}

int exit_code_of(const train::Summary& summary) { return summary.stopped ? 128 + engine::stopping_signal() : 0; }

/// Each point's run has folders of its own.
train::Summary train_point(const Options& options, const std::vector<std::string>& settings,
                           const train::WorkloadKind* plugin) {
  std::vector<std::string> overrides = options.overrides;
  overrides.insert(overrides.end(), settings.begin(), settings.end());
  train::Config config = train::Config::load(options.config, overrides);
  const std::string name = fmt::format("{}", fmt::join(settings, ","));
  if (config.integer("checkpoint.interval") > 0) {
    overrides.push_back("checkpoint.folder=" + (train::checkpoint_folder(config) / name).string());
    config = train::Config::load(options.config, overrides);
  }
  Options of_run = options;
  if (!options.tensorboard.empty()) {
    of_run.tensorboard = std::filesystem::path(options.tensorboard) / name;
  }
  train::Events events;
  return train_workload(of_run, config, workloads::find_workload(config, plugin), set_up(config, std::nullopt), events);
}

/// Runs all points one after the other on the same prepared data. A failed run is reported and does not affect the
/// others.
int train_grid(const Options& options, const train::WorkloadKind* plugin) {
  const engine::Grid grid = engine::Grid::parse(options.grid);
  grid.refuse_fixed(options.overrides);
  for (const engine::GridPoint& point : grid.points()) {  // checks spelling before the first run
    std::vector<std::string> overrides = options.overrides;
    std::ranges::copy(grid.settings(point), std::back_inserter(overrides));
    workloads::find_workload(train::Config::load(options.config, overrides), plugin);
  }
  engine::GridRuns runs;
  std::exception_ptr failure;
  int exit_code = 0;
  for (const engine::GridPoint& point : grid.points()) {
    try {
      runs.push_back({point, train_point(options, grid.settings(point), plugin)});
    } catch (const std::exception& error) {
      runs.push_back({point, std::nullopt, std::string(first_line(error.what()))});
      failure = std::current_exception();
      exit_code = 1;
      continue;
    }
    if (runs.back().summary->stopped) {
      exit_code = exit_code_of(*runs.back().summary);
      break;
    }
  }
  if (std::ranges::none_of(runs, [](const engine::GridRun& run) { return run.summary.has_value(); })) {
    std::rethrow_exception(failure);
  }
  print_answer(options, grid, runs);
  return exit_code;
}

int train_one(const Options& options, const train::Config& config, const train::WorkloadKind& kind, const Place& place,
              train::Events& events) {
  const train::Summary summary = train_workload(options, config, kind, place, events);
  if (place.speaks()) {
    print_answer(options, summary);
  }
  return exit_code_of(summary);
}

int run(const Options& options) {
  const train::WorkloadKind* plugin = options.plugin.empty() ? nullptr : &train::load_plugin(options.plugin);
  workloads::refuse_known_name(plugin, options.plugin);
  if (!options.grid.empty()) {
    if (options.prepare) {
      throw Error(ErrorCode::kUsage, "--prepare", "makes the data once, for all of a grid", "leave out --grid for it");
    }
    if (train::RankPlace::from_environment()) {
      throw Error(ErrorCode::kUsage, "--grid", "trains one run after the other, in one process",
                  "start it without torchrun, or a run for each value");
    }
    return train_grid(options, plugin);
  }
  train::Events events;
  const train::Config config = train::Config::load(options.config, options.overrides);
  const train::WorkloadKind& kind = workloads::find_workload(config, plugin);
  if (options.prepare) {
    if (!kind.prepare) {
      throw Error(ErrorCode::kUsage, "--prepare", fmt::format("the workload {} makes no data", kind.traits.name));
    }
    print_to(stdout, "{}\n", kind.prepare(config));
    return 0;
  }
  const std::optional<train::RankPlace> rank = train::RankPlace::from_environment();
  Place place = set_up(config, rank);
  if (!rank) {
    return train_one(options, config, kind, place, events);
  }
  engine::quiet_torch("FATAL");
  train::Ranks ranks(*rank, std::chrono::seconds(config.integer("ranks.timeout_s")));
  engine::quiet_torch("ERROR");
  place.ranks = &ranks;
  try {
    ranks.use_device(place.device);
    return train_one(options, config, kind, place, events);
  } catch (const std::exception&) {
    ranks.end_all();
  }
}

int out_of_memory() {
  print_to(stderr,
           "unidle-train: out of memory (a smaller batch.size, model.width or loader.prefetch_factor needs less)\n");
  return 1;
}

/// All output is flushed when this returns.
int parse_and_run(int argc, char** argv) {
  // A word in front is a command; the name of a configuration has a dot.
  const std::string_view word = argc > 1 ? argv[1] : "";
  const bool other = word == "export" || word == "predictor";
  const std::string name = word == "export" ? "unidle export" : "unidle train";
  CLI::App app("Train a workload with unidle's C++ engine", word == "predictor" ? "unidle-train predictor" : name);
  app.formatter(std::make_shared<cli::HelpFormat>(terminal_width(stdout)));
  Options options;
  std::function<int()> action = [&options] { return run(options); };
  if (other) {
    action = word == "export" ? engine::set_up_export(app) : engine::set_up_predictor(app);
    --argc;
    ++argv;
  } else {
    add_options(app, options);
  }
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("unidle-train: {} (see unidle-train --help)\n", error.what());
  });
  int code = 0;
  try {
    if (word == "speed") {  // for `unidle check --speed`
      code = train::speed_main(argc - 2, argv + 2);
    } else if (word == "words") {  // for `unidle completion`
      code = print_words(app);
    } else {
      app.parse(argc, argv);
      code = action();
    }
  } catch (const CLI::ParseError& error) {
    code = cli::print_parser_message(app, error);
  }
  flush_output();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  open_missing_standard_streams();
  engine::let_waiting_threads_spin_briefly(argv);
  try {
    init_log();
    std::signal(SIGXFSZ, SIG_IGN);  // exceeding the file size limit becomes a write error, as on a full disk
    engine::keep_freed_memory();
    return parse_and_run(argc, argv);
  } catch (const Error& error) {
    say_error("unidle-train", error.what());
    return error.exit_code();
  } catch (const std::filesystem::filesystem_error& failure) {
    const Error error = file_system_error(failure);
    say_error("unidle-train", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    if (train::is_out_of_memory(error)) {
      return out_of_memory();
    }
    say_error("unidle-train", first_line(error.what()));
    return 1;
  } catch (...) {  // from a loaded library
    say_error("unidle-train", "an exception of an unknown type was thrown");
    return 1;
  }
}
