// GB/s of the readers of foreign logs, on generated files. Peers on the same file, interleaved with ours, medians:
// reading only; `wc -l`; `grep -c loss` (piped: with /dev/null grep would stop at the first match). With --cold every
// file is dropped from the page cache first, so that all of them read from disk. Prints one JSON document per line.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/base/stats.h"
#include "unidle/logs/gpu_format.h"
#include "unidle/logs/text_log.h"
#include "unidle/telemetry/host.h"
#include "unidle/trace/summary.h"

namespace {

namespace fs = std::filesystem;
using unidle::logs::Source;

struct Sample {
  const char* name;
  std::function<std::string(std::size_t)> line;  // returns line i
  std::function<std::int64_t(Source&)> read;     // returns a value that must not be zero
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

std::string bar(std::size_t i) {
  const std::size_t done = i % 1000;
  return fmt::format("\rEpoch {}: {:3}%|{:<10}| {}/1000 [{:02}:{:02}<{:02}:{:02}, {:5.2f}it/s, loss={:.3f}]{}",
                     i / 1000, done / 10, std::string(done / 100, '#'), done, done / 600, done / 10 % 60,
                     (1000 - done) / 600, (1000 - done) / 10 % 60, 9.0 + static_cast<double>(i % 7),
                     1.0 / static_cast<double>(1 + i % 97), done == 999 ? "\n" : "");
}

std::string json(std::size_t i) {
  return fmt::format(
      R"({{"time": "2025-08-22 {:02}:{:02}:{:02}", "epoch": {}, "step": {}, "loss": {:.6f}, "lr": 0.0001, "tokens_per_s": {}}})"
      "\n",
      i / 3600 % 24, i / 60 % 60, i % 60, i / 5000, i % 5000, 1.0 / static_cast<double>(1 + i % 997), 90000 + i % 9000);
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

/// Drops the file from the page cache.
void drop(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  ::fsync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

void read_alone(const fs::path& path) {
  std::vector<char> buffer(std::size_t{1} << 20U);
  const int fd = ::open(path.c_str(), O_RDONLY);
  while (::read(fd, buffer.data(), buffer.size()) > 0) {
  }
  ::close(fd);
}

struct Setup {
  fs::path folder;
  std::size_t bytes = 0;
  int rounds = 0;
  bool cold = false;
};

void measure(const Sample& sample, const Setup& setup) {
  const fs::path path = setup.folder / "log";
  const auto gigabytes = static_cast<double>(write(path, sample, setup.bytes)) * 1e-9;
  std::map<std::string, std::vector<double>> speeds;
  const auto time = [&](const std::string& who, const std::function<void()>& work) {
    if (setup.cold) {
      drop(path);
    }
    speeds[who].push_back(gigabytes / seconds_of(work));
  };
  for (int round = 0; round < setup.rounds; ++round) {
    time("read alone", [&] { read_alone(path); });
    time("ours", [&] {
      Source source(path);
      if (sample.read(source) == 0) {
        fmt::print(stderr, "{}: nothing was read\n", sample.name);
        std::exit(1);
      }
    });
    time("wc -l", [&] { shell("wc -l " + path.string() + " | cat > /dev/null"); });
    time("grep -c", [&] { shell("LC_ALL=C grep -c loss " + path.string() + " | cat > /dev/null"); });
  }
  nlohmann::json peers;
  for (const auto& [who, values] : speeds) {
    peers[who] = unidle::median(values);
  }
  const double ours = peers["ours"];
  const double alone = peers["read alone"];
  peers.erase("ours");
  const nlohmann::json document = {{"name", fmt::format("log_reading_{}{}", sample.name, setup.cold ? "_cold" : "")},
                                   {"unit", "GB/s"},
                                   {"ours", ours},
                                   {"peers", peers},
                                   {"ratio", ours / alone},
                                   {"machine", unidle::telemetry::read_host_facts().cpu_model}};
  fmt::print("{}\n", document.dump());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Speed of reading logs");
  std::size_t megabytes = 256;
  int rounds = 5;
  bool json_lines = false;
  bool cold = false;
  std::vector<std::string> only;
  app.add_option("--megabytes", megabytes, "Size of each generated file")->capture_default_str();
  app.add_option("--rounds", rounds)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--only", only, "Of: chatter, progress, bar, json, gpu_query, trace");
  app.add_flag("--cold", cold, "Read from the disk, not from the page cache");
  app.add_flag("--json", json_lines, "One JSON document a line, which is what it prints anyway");
  CLI11_PARSE(app, argc, argv);
  const unidle::TemporaryFolder folder;
  const auto text = [](Source& source) { return static_cast<std::int64_t>(unidle::logs::read_text_log(source).lines); };
  const auto query = [](Source& source) {
    return unidle::logs::gpu_format_of("timestamp, utilization.gpu [%]\n")->read(source, {}).samples;
  };
  const auto kernels = [](Source& source) { return unidle::trace::read_trace(source).kernel_count; };
  for (const Sample& sample :
       {Sample{"chatter", chatter, text}, Sample{"progress", progress, text}, Sample{"bar", bar, text},
        Sample{"json", json, text}, Sample{"gpu_query", gpu, query}, Sample{"trace", trace, kernels}}) {
    if (only.empty() || std::find(only.begin(), only.end(), sample.name) != only.end()) {
      measure(sample, {folder.path(), megabytes << 20U, rounds, cold});
    }
  }
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print(stderr, "most memory: {} MiB\n", usage.ru_maxrss / 1024);
  return 0;
}
