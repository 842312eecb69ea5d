// How long diagnosing one hour of training takes: 100 steps per second, eight workers, ten series at 10 Hz.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/base/stats.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/record/record.h"
#include "unidle/telemetry/host.h"

namespace {

using unidle::kNsPerMs;
using unidle::kNsPerSecond;

constexpr int kSeconds = 3600;
constexpr int kStepsPerSecond = 100;
constexpr int kWorkers = 8;
constexpr int kSeries = 10;
constexpr int kPointsPerSecond = 10;
constexpr int kRounds = 7;

void write_steps(unidle::record::Writer& writer) {
  for (int i = 0; i < kSeconds * kStepsPerSecond; ++i) {
    unidle::record::Step step;
    step.process = 42;
    step.index = i;
    step.duration_ns = kNsPerSecond / kStepsPerSecond;
    step.t_ns = i * step.duration_ns;
    step.samples = 32;
    step.input_ns = 5 * kNsPerMs;
    step.forward_ns = 2 * kNsPerMs;
    step.backward_ns = 2 * kNsPerMs;
    step.optimizer_ns = kNsPerMs;
    writer.add(step);
    if (i % (60 * kStepsPerSecond) == 0) {
      writer.add(unidle::record::Span{"validate", 42, step.t_ns, kNsPerSecond, 100});
    }
  }
}

void write_hour(const std::filesystem::path& folder) {
  unidle::record::Writer writer(folder);
  writer.set_meta(unidle::record::meta::kStartNs, 0);
  writer.set_meta(unidle::record::meta::kEndNs, kSeconds * kNsPerSecond);
  writer.set_meta(unidle::record::meta::kHost, {{"cpus_allowed", 16}, {"cpus_online", 16}});
  writer.set_meta(unidle::record::meta::kGpus, nlohmann::json::array());
  writer.add(unidle::record::Setting{"loader.workers", std::to_string(kWorkers), "effective", ""});
  write_steps(writer);
  std::vector<std::int64_t> series = {writer.series({std::string(unidle::record::series::kTreeCpu), "cores", ""})};
  for (int i = 1; i < kSeries; ++i) {
    series.push_back(writer.series({"series" + std::to_string(i), "", ""}));
  }
  for (std::int64_t t = 0; t < kSeconds * kNsPerSecond; t += kNsPerSecond / kPointsPerSecond) {
    for (const std::int64_t id : series) {
      writer.add_point(id, {t, 7.5});
    }
  }
  for (int second = 0; second < kSeconds; ++second) {
    for (int worker = 1; worker <= kWorkers; ++worker) {
      writer.add(unidle::record::SampleWork{42, worker, second * kNsPerSecond, 80, 900 * kNsPerMs, 20 * kNsPerMs, 0});
    }
  }
  writer.flush();
}

}  // namespace

int main() {
  const unidle::TemporaryFolder folder;
  const std::filesystem::path record = folder.path() / "hour";
  write_hour(record);
  std::vector<double> diagnose_s;
  std::vector<double> read_s;
  for (int i = 0; i < kRounds; ++i) {
    const std::int64_t begin = unidle::system_clock().now_ns();
    const auto diagnosis = unidle::diagnose::diagnose_record(record);
    diagnose_s.push_back(unidle::seconds(unidle::system_clock().now_ns() - begin));
    if (diagnosis.findings.empty()) {
      fmt::print(stderr, "diagnose_hour: nothing was found\n");
      return 1;
    }
    const std::int64_t read_begin = unidle::system_clock().now_ns();
    const unidle::record::Reader reader(record);
    const std::size_t rows = reader.steps().size() + reader.sample_work().size();
    read_s.push_back(unidle::seconds(unidle::system_clock().now_ns() - read_begin));
    if (rows == 0) {
      return 1;
    }
  }
  const double ours = unidle::median(diagnose_s);
  const double reading = unidle::median(read_s);  // only steps and sample work, for comparison
  const nlohmann::json document = {{"name", "diagnose_hour"},
                                   {"unit", "s for a record of one hour"},
                                   {"ours", ours},
                                   {"peers", {{"reading steps and sample work", reading}}},
                                   {"ratio", ours / reading},
                                   {"machine", unidle::telemetry::read_host_facts().cpu_model}};
  fmt::print("{}\n", document.dump());
  return ours < 1 ? 0 : 1;
}
