#include "unidle/report/turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/stats.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/configured/configured.h"
#include "unidle/observe/observe.h"
#include "unidle/tune/trials/printed.h"
#include "unidle/tune/trials/protection.h"

namespace unidle::report {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPlaceholder = "{config}";
constexpr int kDraws = 2000;

RunData one_run(const TurnsOptions& options, const fs::path& config, const fs::path& scratch,
                tune::Protection protection, bool must_work, const std::stop_token& stop) {
  observe::Options run;
  run.argv = command_for(options, config);
  run.record = scratch / "record";
  run.quiet = true;
  run.forward_signals = false;
  run.timeout_s = options.seconds;
  run.stop = stop;
  run.configured = diagnose::configured_settings(run.argv, fs::current_path());
  const fs::path own = scratch / "own";
  if (!options.command.empty()) {
    tune::protect(run, protection, fs::current_path(), options.command, own);
  }
  if (options.command.empty()) {
    run.argv.push_back("checkpoint.folder=" + (scratch / "checkpoints").string());
  }
  const observe::Result ended = observe::run(run);
  remove_tree(own);
  if (stop.stop_requested()) {
    throw Error(ErrorCode::kCancelled, "compare", "stopped before all runs were done");
  }
  if (must_work && !ended.timed_out && !ended.status.ok()) {
    throw Error(ErrorCode::kChild, config.string(), tune::last_words(ended.err_tail, ended.out_tail),
                "the configuration to compare with must run");
  }
  RunData data = load_run(run.record);
  data.name = config.string();
  if (ended.timed_out) {
    data.meta[std::string(record::meta::kOutcome)] = "stopped";  // by us, as it was meant to be
  }
  return data;
}

std::optional<Ratio> pooled(const std::vector<const Rate*>& a, const std::vector<const Rate*>& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == nullptr || b[i] == nullptr || a[i]->value <= 0) {
      return std::nullopt;
    }
    ratios.push_back(b[i]->value / a[i]->value);
  }
  Ratio ratio{median(ratios), std::nullopt};
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::size_t> pick_pair(0, ratios.size() - 1);
  const auto draw_of = [&](const Rate& rate) {
    return rate.draws.empty() ? rate.value : rate.draws[random() % rate.draws.size()];
  };
  std::vector<double> drawn(ratios.size());
  std::vector<double> draws;
  for (int round = 0; round < kDraws; ++round) {
    for (double& each : drawn) {
      const std::size_t pair = pick_pair(random);
      each = draw_of(*b[pair]) / draw_of(*a[pair]);
    }
    draws.push_back(median(drawn));
  }
  ratio.interval = Interval{quantile(draws, 0.025), quantile(draws, 0.975)};
  return ratio;
}

std::vector<const Rate*> rates(const std::vector<Throughput>& runs, std::optional<Rate> Throughput::*which) {
  std::vector<const Rate*> found;
  for (const Throughput& run : runs) {
    found.push_back(run.*which ? &*(run.*which) : nullptr);
  }
  return found;
}

std::size_t middle_pair(const std::vector<RunPair>& pairs) {
  std::vector<std::size_t> order(pairs.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return pairs[a].ratio < pairs[b].ratio; });
  return order[order.size() / 2];
}

}  // namespace

std::vector<std::string> command_for(const TurnsOptions& options, const fs::path& config) {
  const std::string path = fs::absolute(config).string();
  if (options.command.empty()) {
    if (!fs::exists(options.train_program)) {
      throw Error(ErrorCode::kMissing, options.train_program.string(), "is not there, and a workload needs it",
                  "build it with ./dev build, or give the training command after --");
    }
    return {options.train_program.string(), path, "checkpoint.interval=0", "--format", "json", "-q"};
  }
  std::vector<std::string> command;
  bool has_place = false;
  for (std::string word : options.command) {
    for (std::size_t at = word.find(kPlaceholder); at != std::string::npos; at = word.find(kPlaceholder, at)) {
      word.replace(at, kPlaceholder.size(), path);
      at += path.size();
      has_place = true;
    }
    command.push_back(std::move(word));
  }
  if (!has_place) {
    throw Error(ErrorCode::kUsage, "compare", "the command has no {config}",
                "write {config} where the command takes its configuration file");
  }
  return command;
}

Turns run_in_turns(const TurnsOptions& options, std::stop_token stop) {
  TemporaryFolder::sweep("unidle-compare");
  const TemporaryFolder scratch("unidle-compare");
  const tune::Protection protection =
      tune::ways_to_protect(fs::current_path(), options.command, scratch.path()).ways.front();
  Turns turns;
  for (int pair = 0; pair < options.runs; ++pair) {
    for (const bool second : {false, true}) {
      const bool is_a = (pair % 2 == 0) != second;
      const fs::path folder = scratch.path() / fmt::format("{}-{}", is_a ? 'a' : 'b', pair);
      make_folders(folder);
      RunData run = one_run(options, is_a ? options.a : options.b, folder, protection, is_a, stop);
      if (options.progress) {
        const auto rate = summarise(run).throughput.training;
        options.progress(fmt::format("{} run {}: {}", is_a ? 'A' : 'B', pair + 1,
                                     rate ? format_number(rate->value) + " samples/s" : "no training steps"));
      }
      (is_a ? turns.a : turns.b).push_back(std::move(run));
    }
  }
  return turns;
}

Comparison compare_turns(const Turns& turns, double tolerance) {
  std::vector<Throughput> a;
  std::vector<Throughput> b;
  std::vector<RunPair> pairs;
  for (std::size_t i = 0; i < turns.a.size(); ++i) {
    a.push_back(throughput(turns.a[i], cycles(turns.a[i]), 2 * i + 1));
    b.push_back(throughput(turns.b[i], cycles(turns.b[i]), 2 * i + 2));
    const double rate_a = a.back().training ? a.back().training->value : 0;
    const double rate_b = b.back().training ? b.back().training->value : 0;
    pairs.push_back({rate_a, rate_b, rate_a > 0 ? rate_b / rate_a : 0});
  }
  const std::size_t middle = middle_pair(pairs);
  Comparison c = compare(turns.a[middle], turns.b[middle], tolerance);
  if (pairs.size() > 1) {
    c.pairs = pairs;
    rejudge(c, pooled(rates(a, &Throughput::training), rates(b, &Throughput::training)),
            pooled(rates(a, &Throughput::total), rates(b, &Throughput::total)));
    const auto is_rough = [](const RunData& run) { return summarise(run).rough; };
    const auto rough = std::count_if(turns.a.begin(), turns.a.end(), is_rough) +
                       std::count_if(turns.b.begin(), turns.b.end(), is_rough);
    if (rough > 0) {
      c.notes.push_back(fmt::format("Other processes used the CPUs during {} of {} runs, so the rates are rough.",
                                    rough, turns.a.size() + turns.b.size()));
    }
    c.notes.push_back(
        fmt::format("{} runs of each, in turns: B/A is the median of the pairs. All else is of the pair in the middle.",
                    pairs.size()));
  }
  return c;
}

}  // namespace unidle::report
