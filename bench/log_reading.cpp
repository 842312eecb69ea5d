// GB/s of the readers of foreign logs, on generated files that lie in the page cache. Peers: `wc -l` and `grep -c loss`
// on the same file (piped: into /dev/null grep would stop at the first match), interleaved with ours; the median of
// each counts. Prints one JSON document a line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/base/stats.h"
#include "unidle/logs/gpu_log.h"
#include "unidle/logs/text_log.h"
#include "unidle/telemetry/host.h"
#include "unidle/trace/summary.h"

namespace {

namespace fs = std::filesystem;
using unidle::logs::Source;

struct Sample {
  const char* name;
  std::function<std::string(std::size_t)> line;  // the i-th
  std::function<std::int64_t(Source&)> read;     // returns something that must not be zero
};

std::string chatter(std::size_t i) {
  return fmt::format(
      "2025-08-22 {:02}:{:02}:{:02},123 - libs.data.reader - INFO - [cache] part {} of the table was mapped, {} "
      "columns\n",
      i / 3600 % 24, i / 60 % 60, i % 60, i, i % 157);
}

std::string progress(std::size_t i) {
  return fmt::format(
      "2025-08-22 {:02}:{:02}:{:02} - train - INFO - Epoch {}/90 step {} loss: {:.4f} lr: 1.0e-04 acc: 0.71\n",
      i / 3600 % 24, i / 60 % 60, i % 60, i / 5000 + 1, i % 5000, 1.0 / (1.0 + static_cast<double>(i % 997)));
}

std::string gpu(std::size_t i) {
  return i == 0 ? std::string(
                      "timestamp, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], "
                      "temperature.gpu\n")
                : fmt::format("2025/08/22 {:02}:{:02}:{:02}.159, {} %, {} MiB, 81920 MiB, 63.63 W, 37\n", i / 3600 % 24,
                              i / 60 % 60, i % 60, i % 34, 572 + i % 600);
}

std::string trace(std::size_t i) {
  return fmt::format(
      R"({}{{"ph":"X","cat":"kernel","name":"kernel_{}","pid":0,"tid":7,"ts":{},"dur":8,"args":{{"device":0,"stream":7}}}})"
      "\n",
      i == 0 ? "[" : ",", i % 20, i * 10);
}

std::uintmax_t write(const fs::path& path, const Sample& sample, std::size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  std::size_t written = 0;
  for (std::size_t i = 0; written < bytes; ++i) {
    const std::string line = sample.line(i);
    file << line;
    written += line.size();
  }
  if (std::string_view(sample.name) == "trace") {
    file << "]\n";
  }
  file.close();
  return fs::file_size(path);
}

double seconds_of(const std::function<void()>& work) {
  const std::int64_t begin = unidle::system_clock().now_ns();
  work();
  return unidle::seconds(unidle::system_clock().now_ns() - begin);
}

void shell(const std::string& command) {
  if (std::system(command.c_str()) < 0) {
    std::exit(1);
  }
}

void measure(const Sample& sample, const fs::path& folder, std::size_t bytes, int rounds) {
  const fs::path path = folder / "log";
  const auto gigabytes = static_cast<double>(write(path, sample, bytes)) * 1e-9;
  std::vector<double> ours;
  std::vector<double> wc;
  std::vector<double> grep;
  for (int round = 0; round < rounds; ++round) {
    ours.push_back(gigabytes / seconds_of([&] {
                     Source source(path);
                     if (sample.read(source) == 0) {
                       fmt::print(stderr, "{}: nothing was read\n", sample.name);
                       std::exit(1);
                     }
                   }));
    wc.push_back(gigabytes / seconds_of([&] { shell("wc -l " + path.string() + " | cat > /dev/null"); }));
    grep.push_back(gigabytes /
                   seconds_of([&] { shell("LC_ALL=C grep -c loss " + path.string() + " | cat > /dev/null"); }));
  }
  const nlohmann::json document = {{"name", std::string("log_reading_") + sample.name},
                                   {"unit", "GB/s"},
                                   {"ours", unidle::median(ours)},
                                   {"peers", {{"grep -c", unidle::median(grep)}, {"wc -l", unidle::median(wc)}}},
                                   {"ratio", unidle::median(ours) / unidle::median(grep)},
                                   {"machine", unidle::telemetry::read_host_facts().cpu_model}};
  fmt::print("{}\n", document.dump());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Speed of reading logs");
  std::size_t megabytes = 256;
  int rounds = 5;
  bool json = false;
  app.add_option("--megabytes", megabytes, "Size of each generated file")->capture_default_str();
  app.add_option("--rounds", rounds)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_flag("--json", json, "One JSON document a line, which is what it prints anyway");
  CLI11_PARSE(app, argc, argv);
  const unidle::TemporaryFolder folder;
  const auto text = [](Source& source) { return static_cast<std::int64_t>(unidle::logs::read_text_log(source).lines); };
  const auto query = [](Source& source) { return unidle::logs::read_gpu_query(source).samples; };
  const auto kernels = [](Source& source) { return unidle::trace::read_trace(source).kernel_count; };
  for (const Sample& sample : {Sample{"chatter", chatter, text}, Sample{"progress", progress, text},
                               Sample{"gpu_query", gpu, query}, Sample{"trace", trace, kernels}}) {
    measure(sample, folder.path(), megabytes << 20U, rounds);
  }
  return 0;
}
