// Pairs of pictures decoded, cropped and batched per second: unidle's loader, the machine's ceiling, and torch's
// DataLoader with Pillow. The three are measured alternately, several times; prints medians and quartiles.
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/process.h"
#include "unidle/base/stats.h"
#include "unidle/data/loader.h"
#include "unidle/data/sources/image_pairs.h"

namespace fs = std::filesystem;
using namespace unidle;

namespace {

constexpr int kScale = 4;
constexpr int kSide = 512;  // of the high-resolution pictures created here

struct Options {
  std::string folder;
  std::string photos = ".venv/lib/python3.11/site-packages/skimage/data";
  std::string python = ".venv/bin/python";
  std::string peer = "bench/peers/loader_images_peer.py";
  int crop = 128;
  int batch = 16;
  int prefetch = 4;
  int repetitions = 7;
  double seconds = 1;
  bool no_peer = false;
  bool json = false;
};

using Rates = std::vector<double>;

// --- the data set ---------------------------------------------------------------------------------------------------

/// A 512 x 512 tile; the photograph is mirrored beyond its edges, so that nothing is resampled.
data::Picture tile_of(const data::Picture& photo, int left, int top) {
  const auto mirrored = [](int at, int size) { return at < size ? at : 2 * size - 1 - at; };
  data::Picture tile{kSide, kSide, {}};
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const auto row = static_cast<std::size_t>(mirrored(top + y, photo.height));
      const auto column = static_cast<std::size_t>(mirrored(left + x, photo.width));
      const auto pixel = photo.pixels.begin() +
                         static_cast<std::ptrdiff_t>((row * static_cast<std::size_t>(photo.width) + column) * 3);
      tile.pixels.insert(tile.pixels.end(), pixel, pixel + 3);
    }
  }
  return tile;
}

data::Picture box_downscale(const data::Picture& high) {
  data::Picture low{high.width / kScale, high.height / kScale, {}};
  for (int y = 0; y < low.height; ++y) {
    for (int x = 0; x < low.width; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        int sum = kScale * kScale / 2;
        for (int i = 0; i < kScale * kScale; ++i) {
          const int from = ((y * kScale + i / kScale) * high.width + x * kScale + i % kScale) * 3 + channel;
          sum += high.pixels[static_cast<std::size_t>(from)];
        }
        low.pixels.push_back(static_cast<std::uint8_t>(sum / (kScale * kScale)));
      }
    }
  }
  return low;
}

void make_pairs(const std::string& photos, const fs::path& folder) {
  make_folders(folder / "low");
  make_folders(folder / "high");
  data::ImageDecoder decoder;
  int made = 0;
  for (const char* name : {"astronaut.png", "chelsea.png", "coffee.png", "hubble_deep_field.jpg", "ihc.png",
                           "motorcycle_left.png", "motorcycle_right.png", "retina.jpg", "rocket.jpg"}) {
    const std::string path = fs::path(photos) / name;
    const data::Picture photo = decoder.decode(decoder.read(path), path);
    for (int top = 0; top == 0 || top + kSide <= photo.height; top += kSide) {
      for (int left = 0; left == 0 || left + kSide <= photo.width; left += kSide) {
        const data::Picture high = tile_of(photo, left, top);
        const std::string file = fmt::format("{:04}.png", made++);
        write_file_atomic(folder / "high" / file, data::encode_png(high));
        write_file_atomic(folder / "low" / file, data::encode_png(box_downscale(high)));
      }
    }
  }
}

// --- what is measured -----------------------------------------------------------------------------------------------

int usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

/// Calls per second, measured for about `length_s` seconds.
template <typename Function>
double rate_of(double length_s, const Function& call) {
  const std::int64_t start = system_clock().now_ns();
  const auto end = start + static_cast<std::int64_t>(length_s * 1e9);
  double calls = 0;
  std::int64_t now = start;
  do {
    call();
    ++calls;
    now = system_clock().now_ns();
  } while (now < end);
  return calls / (static_cast<double>(now - start) * 1e-9);
}

/// Processor seconds used by this process.
double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto in_seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime);
}

/// Work per wall second and per processor second; the latter is robust on a shared machine.
struct Speed {
  double wall = 0;
  double cpu = 0;
};

Speed loader_rate(const data::Source& source, const Options& options, int workers, std::uint64_t seed) {
  data::Loader loader(source, {.batch = options.batch, .workers = workers, .prefetch = options.prefetch, .seed = seed});
  for (int i = 0; i < 2 * std::max(1, workers); ++i) {
    loader.next();
  }
  // The slots are full before and after, so that the loader makes as many pairs as are taken.
  const double cpu_before = cpu_seconds();
  const std::int64_t start = system_clock().now_ns();
  const double wall = rate_of(options.seconds, [&] { loader.next(); }) * options.batch;
  const double taken = wall * seconds(system_clock().now_ns() - start);
  return {wall, taken / (cpu_seconds() - cpu_before)};
}

/// Pairs per second of `threads` threads that only call the source.
Speed bare_rate(const data::Source& source, double length_s, int threads, std::uint64_t seed) {
  std::vector<double> rates(static_cast<std::size_t>(threads));
  const double cpu_before = cpu_seconds();
  const std::int64_t start = system_clock().now_ns();
  {
    std::vector<std::jthread> running;
    for (int thread = 0; thread < threads; ++thread) {
      running.emplace_back([&, thread] {
        std::vector<std::vector<std::byte>> memory;
        data::Places places;
        for (const data::Field& field : source.fields()) {
          memory.emplace_back(field.bytes());
        }
        for (auto& part : memory) {
          places.emplace_back(part);
        }
        std::int64_t index = thread;
        rates[static_cast<std::size_t>(thread)] = rate_of(length_s, [&] {
          const std::int64_t items = source.items();
          source.read({data::shuffled_index(seed, index / items, index % items, items), index / items, seed},
                      {&places, 1});
          index += threads;
        });
      });
    }
  }
  double sum = 0;
  for (const double rate : rates) {
    sum += rate;
  }
  return {sum, sum * seconds(system_clock().now_ns() - start) / (cpu_seconds() - cpu_before)};
}

std::map<std::string, Rates> peer_rates(const Options& options, const std::string& folder, std::string& versions) {
  Command command;
  command.argv = {options.python,
                  options.peer,
                  folder,
                  "--crop",
                  std::to_string(options.crop),
                  "--batch",
                  std::to_string(options.batch),
                  "--prefetch",
                  std::to_string(options.prefetch),
                  "--seconds",
                  std::to_string(options.seconds)};
  command.out = Command::Stream::kPipe;
  command.err = Command::Stream::kPipe;
  const Finished finished = run_to_end(command);
  if (!finished.status.ok()) {
    throw Error(ErrorCode::kChild, options.peer, "failed: " + finished.err);
  }
  const nlohmann::json answer = nlohmann::json::parse(finished.out);
  versions = fmt::format("torch {}, Pillow {}", answer["versions"]["torch"].get<std::string>(),
                         answer["versions"]["pillow"].get<std::string>());
  std::map<std::string, Rates> rates;
  for (const auto& [workers, rate] : answer["rates"].items()) {
    rates[workers].push_back(rate.get<double>());
  }
  return rates;
}

/// Whole high-resolution pictures, decoded by one thread from memory.
struct DecodeRates {
  Rates pictures_per_s;
  Rates reference_per_s;  // through libspng
  double file_mb = 0;     // mean per picture
  double pixel_mb = 0;
};

void measure_decode(const std::string& folder, double length_s, DecodeRates& rates) {
  std::vector<std::string> files;
  double pixels = 0;
  double bytes = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(folder) / "high")) {
    files.push_back(read_file(entry.path()));
    bytes += static_cast<double>(files.back().size());
    pixels += static_cast<double>(data::probe_image(std::as_bytes(std::span(files.back())), "picture").rgb_bytes());
  }
  rates.file_mb = bytes / 1e6 / static_cast<double>(files.size());
  rates.pixel_mb = pixels / 1e6 / static_cast<double>(files.size());
  for (const bool reference : {false, true}) {
    data::ImageDecoder decoder;
    decoder.use_reference_png(reference);
    const double rounds = rate_of(length_s, [&] {
      for (const std::string& file : files) {
        decoder.decode_region(std::as_bytes(std::span(file)), "picture", {});
      }
    });
    (reference ? rates.reference_per_s : rates.pictures_per_s).push_back(rounds * static_cast<double>(files.size()));
  }
}

// --- the account ----------------------------------------------------------------------------------------------------

std::string told(const Rates& rates) {
  return fmt::format("{:9.1f}   ({:.1f} .. {:.1f})", median(rates), quantile(rates, 0.25), quantile(rates, 0.75));
}

const std::pair<const std::string, Rates>& best_of(const std::map<std::string, Rates>& all) {
  return *std::max_element(all.begin(), all.end(),
                           [](const auto& a, const auto& b) { return median(a.second) < median(b.second); });
}

std::string machine() {
  std::string model = "unknown CPU";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  }
  return fmt::format("{}, {} CPUs", model, usable_cpus());
}

struct Result {
  std::map<std::string, Rates> ours;
  std::map<std::string, Rates> peers;
  Rates one_thread;
  Rates all_threads;
  Rates share_of_ceiling;  // of each repetition, at its best worker count
  Rates share_of_cpu;      // the same per processor second: the loader's own overhead
  DecodeRates decode;
  std::string versions;
};

void print_table(const Result& result, const Options& options) {
  const int cpus = usable_cpus();
  fmt::print("pairs decoded, cropped ({} px) and batched ({}) per second, median (quartiles) of {}\n", options.crop,
             options.batch, options.repetitions);
  for (const auto& [workers, rates] : result.ours) {
    fmt::print("  unidle, {:>2} workers          {}\n", workers, told(rates));
  }
  fmt::print("  one thread, no loader       {}\n", told(result.one_thread));
  fmt::print("  {:>2} threads, no loader       {}\n", cpus, told(result.all_threads));
  fmt::print("  ceiling: {} x one thread     {:9.1f}   reached: {:.2f} ({:.2f} .. {:.2f})\n", cpus,
             cpus * median(result.one_thread), median(result.share_of_ceiling), quantile(result.share_of_ceiling, 0.25),
             quantile(result.share_of_ceiling, 0.75));
  fmt::print("  pairs per processor second, loader / one thread: {:.2f} ({:.2f} .. {:.2f})\n",
             median(result.share_of_cpu), quantile(result.share_of_cpu, 0.25), quantile(result.share_of_cpu, 0.75));
  for (const auto& [workers, rates] : result.peers) {
    fmt::print("  DataLoader, {:>2} workers      {}\n", workers, told(rates));
  }
  if (!result.peers.empty()) {
    const auto& ours = best_of(result.ours);
    const auto& theirs = best_of(result.peers);
    fmt::print("  unidle ({} workers) / DataLoader ({} workers): {:.2f}\n", ours.first, theirs.first,
               median(ours.second) / median(theirs.second));
  }
  const DecodeRates& decode = result.decode;
  fmt::print("whole high pictures decoded by one thread ({:.0f} KB each, {:.2f} MB of pixels)\n", decode.file_mb * 1e3,
             decode.pixel_mb);
  for (const auto* rates : {&decode.pictures_per_s, &decode.reference_per_s}) {
    fmt::print("  {}  {} pictures/s, {:.0f} MB/s of pixels\n",
               rates == &decode.pictures_per_s ? "unidle           " : "libspng and zlib ", told(*rates),
               median(*rates) * decode.pixel_mb);
  }
}

void print_json(const Result& result) {
  const auto& ours = best_of(result.ours);
  const double ceiling = usable_cpus() * median(result.one_thread);
  nlohmann::json document = {{"name", "loader_images"},
                             {"unit", "pairs/s"},
                             {"ours", median(ours.second)},
                             {"ours_quartiles", {quantile(ours.second, 0.25), quantile(ours.second, 0.75)}},
                             {"ours_workers", std::stoi(ours.first)},
                             {"peers", nlohmann::json::object()},
                             {"ratio", nullptr},
                             {"machine", machine()},
                             {"one_thread", median(result.one_thread)},
                             {"all_threads", median(result.all_threads)},
                             {"ceiling", ceiling},
                             {"share_of_ceiling", median(result.share_of_ceiling)},
                             {"share_of_cpu_time", median(result.share_of_cpu)},
                             {"decode_pictures_per_s", median(result.decode.pictures_per_s)},
                             {"decode_mb_per_s", median(result.decode.pictures_per_s) * result.decode.pixel_mb},
                             {"decode_reference_pictures_per_s", median(result.decode.reference_per_s)}};
  for (const auto& [workers, rates] : result.peers) {
    document["peers"][fmt::format("DataLoader and Pillow, {} workers", workers)] = median(rates);
  }
  if (!result.peers.empty()) {
    document["ratio"] = median(ours.second) / median(best_of(result.peers).second);
    document["peer_versions"] = result.versions;
  }
  fmt::print("{}\n", document.dump(2));
}

Result measure(const std::string& folder, const Options& options) {
  const int cpus = usable_cpus();
  const data::ImagePairSource source(folder, {.crop = options.crop, .scale = kScale});
  Result result;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    const auto seed = static_cast<std::uint64_t>(repetition);
    const Speed before = bare_rate(source, options.seconds, 1, seed);
    Speed best;
    for (const int workers : std::vector<int>{0, 1, cpus, 2 * cpus}) {
      const Speed speed = loader_rate(source, options, workers, seed);
      best = speed.wall > best.wall ? speed : best;
      result.ours[std::to_string(workers)].push_back(speed.wall);
    }
    result.all_threads.push_back(bare_rate(source, options.seconds, cpus, seed).wall);
    // Other programs may slow the machine down for a while: measure the ceiling before and after.
    const Speed after = bare_rate(source, options.seconds, 1, seed);
    result.one_thread.push_back((before.wall + after.wall) / 2);
    result.share_of_ceiling.push_back(best.wall / (cpus * result.one_thread.back()));
    result.share_of_cpu.push_back(best.cpu / ((before.cpu + after.cpu) / 2));
    measure_decode(folder, options.seconds / 2, result.decode);
    if (!options.no_peer) {
      for (auto& [workers, rates] : peer_rates(options, folder, result.versions)) {
        result.peers[workers].insert(result.peers[workers].end(), rates.begin(), rates.end());
      }
    }
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Pairs of pictures per second: unidle's loader, the ceiling, and torch's DataLoader with Pillow");
  app.add_option("folder", options.folder, "Folder with high/ and low/ (made from photographs when not given)");
  app.add_option("--photos", options.photos, "Folder of scikit-image's photographs")->envname("UNIDLE_PHOTOS");
  app.add_option("--python", options.python, "Python with torch and Pillow");
  app.add_option("--peer", options.peer, "The peer's script");
  app.add_option("--crop", options.crop, "Side of the high crop");
  app.add_option("--batch", options.batch, "Pairs a batch");
  app.add_option("--prefetch", options.prefetch, "Batches ahead per worker, for both");
  app.add_option("--repetitions", options.repetitions, "How often all is measured")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", options.seconds, "Length of one measurement")->check(CLI::Range(0.01, 600.0));
  app.add_flag("--no-peer", options.no_peer, "Leave the DataLoader out");
  app.add_flag("--json", options.json, "Print one JSON document");
  CLI11_PARSE(app, argc, argv);
  try {
    const TemporaryFolder made("unidle-bench");
    if (options.folder.empty()) {
      make_pairs(options.photos, made.path());
    }
    const Result result = measure(options.folder.empty() ? made.path().string() : options.folder, options);
    if (options.json) {
      print_json(result);
    } else {
      fmt::print("{}{}\n", machine(), result.versions.empty() ? "" : ", " + result.versions);
      print_table(result, options);
    }
  } catch (const Error& error) {
    fmt::print(stderr, "loader_images: {}\n", error.what());
    return error.exit_code();
  }
  return 0;
}
