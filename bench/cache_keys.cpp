// The feature cache with very many keys: what it costs to open it, to find an entry or none, to count, to verify, and
// what a key takes in memory and on the disk.
//   cache_keys [--folder FOLDER] [--keys N] [--bytes N]
// A folder that is there goes on with what it holds, so that a larger number of keys costs only those that are new. One
// line of JSON; "reading_s" is what it takes to read every file without looking at it, by as many threads as verify
// has.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/base/handle.h"
#include "unidle/cache/store.h"

namespace {

using namespace unidle;
namespace fs = std::filesystem;

constexpr std::uint64_t kSamples = 10'000;

cache::Options options_of(const fs::path& folder, cache::Durability durability, std::uint64_t hot_bytes) {
  cache::Options options;
  options.path = folder;
  options.durability = durability;
  options.hot_bytes = hot_bytes;
  return options;
}

cache::Key key_of_number(std::uint64_t number) { return cache::key_of_name(std::to_string(number)); }

std::uint64_t size_of_file(const fs::path& path) {
  std::error_code none;
  const std::uintmax_t bytes = fs::file_size(path, none);
  return none ? 0 : bytes;
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

double seconds_of(const std::function<void()>& work) {
  const std::int64_t start_ns = system_clock().now_ns();
  work();
  return seconds(system_clock().now_ns() - start_ns);
}

/// As fast as many keys get in: without waiting for the disk.
void fill(const fs::path& folder, std::uint64_t begin, std::uint64_t end, std::uint64_t bytes) {
  cache::Store store(options_of(folder, cache::Durability::kProcess, 0));
  const std::vector<std::byte> data(bytes, std::byte{7});
  while (begin < end) {
    std::vector<cache::NewEntry> entries;
    for (; begin < end && entries.size() < 1024; ++begin) {
      entries.push_back({key_of_number(begin), {{"values", cache::DType::kU8, {bytes}, data}}});
    }
    store.put_many(entries);
  }
}

struct OnDisk {
  std::atomic<std::uint64_t> files{0};
  std::atomic<std::uint64_t> bytes{0};
};

/// Every file of the cache, read and forgotten.
void read_files(const fs::path& blobs, OnDisk& all) {
  std::atomic<unsigned> next{0};
  const auto work = [&] {
    std::vector<char> buffer(1 << 20);
    for (unsigned part = next++; part < cache::Store::kParts; part = next++) {
      const fs::path folder = blobs / fmt::format("{:02x}", part);
      DIR* listing = ::opendir(folder.c_str());
      for (const dirent* entry = nullptr; listing != nullptr && (entry = ::readdir(listing)) != nullptr;) {
        const UniqueFd fd(::openat(::dirfd(listing), entry->d_name, O_RDONLY | O_CLOEXEC));
        for (ssize_t got = 0; entry->d_name[0] != '.' && (got = ::read(fd.get(), buffer.data(), buffer.size())) > 0;) {
          all.bytes += static_cast<std::uint64_t>(got);
        }
        all.files += entry->d_name[0] != '.' ? 1 : 0;
      }
      if (listing != nullptr) {
        ::closedir(listing);
      }
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::clamp(std::thread::hardware_concurrency(), 1U, 16U); ++i) {
    threads.emplace_back(work);
  }
}

nlohmann::json measure(const fs::path& folder, std::uint64_t keys) {
  nlohmann::json result;
  const std::uint64_t before = resident_bytes();
  std::optional<cache::Store> store;
  result["open_ms"] = 1e3 * seconds_of([&] { store.emplace(options_of(folder, cache::Durability::kPower, 0)); });
  result["first_count_ms"] = 1e3 * seconds_of([&] { store->statistics(); });
  result["count_us"] = 1e6 * seconds_of([&] {
                         for (int i = 0; i < 100; ++i) {
                           store->statistics();
                         }
                       }) /
                       100;
  std::mt19937_64 random(1);
  std::uint64_t found = 0;
  const auto get_us = [&](std::uint64_t first) {
    return 1e6 * seconds_of([&] {
             for (std::uint64_t i = 0; i < kSamples; ++i) {
               found += store->get(key_of_number(first + random() % keys)) ? 1 : 0;
             }
           }) /
           kSamples;
  };
  result["get_present_us"] = get_us(0);
  result["get_absent_us"] = get_us(std::uint64_t{1} << 40);
  const std::uint64_t after = resident_bytes();
  result["memory_bytes_a_key"] = static_cast<double>(after > before ? after - before : 0) / static_cast<double>(keys);
  result["memory_MB"] = static_cast<double>(after) / 1e6;
  std::uint64_t checked = 0;
  result["verify_s"] = seconds_of([&] { checked = store->verify().checked; });
  OnDisk all;
  result["reading_s"] = seconds_of([&] { read_files(folder / "v1/blobs", all); });
  std::uint64_t index_bytes = 0;
  for (const char* name : {"index.db", "index.db-wal"}) {
    index_bytes += size_of_file(folder / "v1" / name);
  }
  result["index_bytes_a_key"] = static_cast<double>(index_bytes) / static_cast<double>(keys);
  result["keys"] = store->statistics().entries;
  result["right"] = found == kSamples && checked == keys && all.files == keys && store->statistics().entries == keys;
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What the feature cache costs with very many keys");
  std::string folder;
  std::uint64_t keys = 20'000;
  std::uint64_t bytes = 1000;
  bool json = false;
  app.add_option("--folder", folder);
  app.add_option("--keys", keys);
  app.add_option("--bytes", bytes);
  app.add_flag("--json", json, "The output is JSON in any case");
  CLI11_PARSE(app, argc, argv);
  std::optional<TemporaryFolder> scratch;
  if (folder.empty()) {
    scratch.emplace("unidle-bench-keys");
    folder = (scratch->path() / "cache").string();
  }
  std::uint64_t there = 0;
  double fill_s = 0;
  if (fs::exists(folder)) {
    there = cache::Store(options_of(folder, cache::Durability::kPower, 0)).statistics().entries;
  }
  fill_s = seconds_of([&] {
    if (const pid_t child = ::fork(); child == 0) {  // so that what is measured has the memory of a reader
      fill(folder, there, keys, bytes);
      ::_exit(0);
    } else {
      ::waitpid(child, nullptr, 0);
    }
  });
  nlohmann::json result = measure(folder, keys);
  result["fill_us_a_key"] = keys > there ? 1e6 * fill_s / static_cast<double>(keys - there) : 0;
  fmt::print("{}\n", result.dump());
  return result["right"] ? 0 : 1;
}
