// The size of a record of one hour, and how fast it opens: 100 steps per second with all their parts, the sampler's
// quick series ten times per second (it uses four), the slow ones once per second, eight workers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/base/stats.h"
#include "unidle/base/units.h"
#include "unidle/record/record.h"
#include "unidle/telemetry/host.h"

namespace {

using unidle::kNsPerMs;
using unidle::kNsPerSecond;

constexpr int kSeconds = 3600;
constexpr int kStepsPerSecond = 100;
constexpr int kQuickSeries = 10;  // for the command, the host and one GPU that offers all of them
constexpr int kSlowSeries = 24;
constexpr int kQuickRate_hz = 10;
constexpr int kWorkers = 8;
constexpr double kMostBytes = 50e6;
constexpr double kMost_s = 1;
constexpr int kRounds = 5;

/// Numbers that look measured: equal ones would compress better.
class Readings {
 public:
  double value() { return spread_(random_); }
  std::int64_t around(std::int64_t mean) { return std::llround(static_cast<double>(mean) * value()); }

 private:
  std::mt19937_64 random_{7};
  std::uniform_real_distribution<double> spread_{0.9, 1.1};
};

void add_step(unidle::record::Writer& writer, Readings& readings, std::int64_t index, std::int64_t start_ns) {
  unidle::record::Step step;
  step.process = 123456;
  step.index = index;
  step.duration_ns = kNsPerSecond / kStepsPerSecond;
  step.t_ns = start_ns + index * step.duration_ns;
  step.samples = 32;
  step.input_ns = readings.around(2 * kNsPerMs);
  step.transfer_ns = readings.around(kNsPerMs);
  step.forward_ns = readings.around(3 * kNsPerMs);
  step.backward_ns = readings.around(3 * kNsPerMs);
  step.optimizer_ns = readings.around(kNsPerMs);
  step.sync_ns = readings.around(kNsPerMs);
  step.syncs = 1;
  step.loss = readings.value();
  step.samples_before = 32 * index;
  writer.add(step);
}

/// Writes in the order of a real run. The start time is that of a machine that has been up for months.
void write_hour(const std::filesystem::path& folder) {
  unidle::record::Writer writer(folder);
  Readings readings;
  const std::int64_t start_ns = std::int64_t{9'000'000} * kNsPerSecond;
  writer.set_meta(unidle::record::meta::kStartNs, start_ns);
  std::vector<std::int64_t> series;
  for (int i = 0; i < kQuickSeries + kSlowSeries; ++i) {
    series.push_back(writer.series({"series" + std::to_string(i), "W", "gpu0"}));
  }
  std::int64_t step = 0;
  for (std::int64_t tick = 0; tick < std::int64_t{kSeconds} * kQuickRate_hz; ++tick) {
    const std::int64_t t_ns = start_ns + tick * (kNsPerSecond / kQuickRate_hz);
    const bool second = tick % kQuickRate_hz == 0;
    for (int i = 0; i < kStepsPerSecond / kQuickRate_hz; ++i) {
      add_step(writer, readings, step++, start_ns);
    }
    for (std::size_t i = 0; i < (second ? series.size() : std::size_t{kQuickSeries}); ++i) {
      writer.add_point(series[i], {t_ns + readings.around(kNsPerMs), 100 * readings.value()});
    }
    for (int worker = 1; second && worker <= kWorkers; ++worker) {
      writer.add(unidle::record::SampleWork{123456 + worker, 0, t_ns, 400, readings.around(900 * kNsPerMs),
                                            readings.around(20 * kNsPerMs), 1'000'000});
    }
  }
}

/// Times for opening, and for reading what a diagnosis reads.
std::pair<double, double> read_times(const std::filesystem::path& folder) {
  std::vector<double> open_s;
  std::vector<double> read_s;
  for (int i = 0; i < kRounds; ++i) {
    const std::int64_t begin = unidle::system_clock().now_ns();
    const unidle::record::Reader reader(folder);
    const auto series = reader.all_series();
    open_s.push_back(unidle::seconds(unidle::system_clock().now_ns() - begin));
    std::size_t rows = reader.steps().size() + reader.sample_work().size();
    for (const unidle::record::Series& one : series) {
      rows += reader.points(one).size();
    }
    read_s.push_back(unidle::seconds(unidle::system_clock().now_ns() - begin));
    if (rows < static_cast<std::size_t>(kSeconds) * kStepsPerSecond) {
      fmt::print(stderr, "record_size: rows are missing\n");
      std::exit(1);
    }
  }
  return {unidle::median(open_s), unidle::median(read_s)};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("How large the record of an hour is");
  bool as_json = false;
  app.add_flag("--json", as_json);
  CLI11_PARSE(app, argc, argv);
  const unidle::TemporaryFolder folder;
  const std::filesystem::path record = folder.path() / "hour";
  const std::int64_t begin = unidle::system_clock().now_ns();
  write_hour(record);
  const double write_s = unidle::seconds(unidle::system_clock().now_ns() - begin);
  const auto bytes = static_cast<double>(std::filesystem::file_size(record / "record.db"));
  const auto [open_s, read_s] = read_times(record);
  const bool fine = bytes < kMostBytes && open_s < kMost_s;
  if (as_json) {
    fmt::print("{}\n", nlohmann::json{{"name", "record_size"},
                                      {"unit", "bytes for one hour at 100 steps a second"},
                                      {"ours", bytes},
                                      {"open_s", open_s},
                                      {"read_s", read_s},
                                      {"write_s", write_s},
                                      {"peers", {{"allowed", kMostBytes}}},
                                      {"ratio", kMostBytes / bytes},
                                      {"machine", unidle::telemetry::read_host_facts().cpu_model}}
                           .dump());
  } else {
    fmt::print("an hour of {} steps a second, {} series at {} Hz and {} at 1 Hz, {} workers\n", kStepsPerSecond,
               kQuickSeries, kQuickRate_hz, kSlowSeries, kWorkers);
    fmt::print("  size          {:>10}  (at most {})\n", unidle::format_bytes(static_cast<std::uint64_t>(bytes)),
               unidle::format_bytes(static_cast<std::uint64_t>(kMostBytes)));
    fmt::print("  to open       {:>10}  (at most {})\n", unidle::format_seconds(open_s),
               unidle::format_seconds(kMost_s));
    fmt::print("  to read all   {:>10}\n", unidle::format_seconds(read_s));
    fmt::print("  to write      {:>10}\n", unidle::format_seconds(write_s));
  }
  return fine ? 0 : 1;
}
