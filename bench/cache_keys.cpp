// The feature cache with very many keys: the cost of opening it, of finding an entry or a missing one, of counting,
// putting and verifying, and the memory and disk space per key.
//   cache_keys [--folder FOLDER] [--keys N] [--bytes N] [--index-only] [--rounds N]
// An existing folder keeps its contents, so that a larger number of keys costs only the new ones. With --index-only all
// but 10,000 keys have rows in the index but no files, since creating ten million files takes hours; verifying is then
// skipped. Prints one line of JSON. "reading_s" is the time for reading every file without checking it, in the same
// order and with as many threads as verify; "cold": after the kernel was asked to drop the files from its cache. Both
// times are the best of the rounds, which alternate.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/base/handle.h"
#include "unidle/cache/detail/index.h"
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

/// The fastest way to add many keys: without waiting for the disk.
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

/// Adds index rows for entries that have no files.
void fill_index(const fs::path& folder, std::uint64_t keys, std::uint64_t bytes) {
  cache::Store(options_of(folder, cache::Durability::kProcess, 0)).statistics();  // creates the folders
  cache::detail::Board board(folder / "v1/board");
  cache::detail::Index index(folder / "v1" / cache::detail::Index::file_name(), board);
  std::mt19937_64 random(7);
  index.rebuild([&](const auto& add) {  // in the order of existing blobs: folder by folder
    for (std::uint64_t part = 0; part < cache::Store::kParts; ++part) {
      std::vector<cache::Key> some((part + 1) * keys / cache::Store::kParts - part * keys / cache::Store::kParts);
      for (cache::Key& key : some) {
        for (std::size_t at = 0; at < key.bytes.size(); at += sizeof(std::uint64_t)) {
          const std::uint64_t number = random();
          std::memcpy(key.bytes.data() + at, &number, sizeof number);
        }
        key.bytes[0] = static_cast<std::uint8_t>(part);
      }
      std::sort(some.begin(), some.end());
      for (const cache::Key& key : some) {
        add({key, bytes, false});
      }
    }
  });
}

/// Calls work(fd) for every file of the cache, folder by folder, in the order of inodes within each.
void each_file(const fs::path& blobs, const std::function<void(int fd)>& work) {
  std::atomic<unsigned> next{0};
  const auto some = [&] {
    for (unsigned part = next++; part < cache::Store::kParts; part = next++) {
      DIR* const listing = ::opendir((blobs / fmt::format("{:02x}", part)).c_str());
      std::vector<std::pair<ino_t, std::string>> names;
      for (const dirent* entry = nullptr; listing != nullptr && (entry = ::readdir(listing)) != nullptr;) {
        if (entry->d_name[0] != '.') {
          names.emplace_back(entry->d_ino, entry->d_name);
        }
      }
      std::sort(names.begin(), names.end());
      for (const auto& [inode, name] : names) {
        const UniqueFd fd(::openat(::dirfd(listing), name.c_str(), O_RDONLY | O_CLOEXEC));
        work(fd.get());
      }
      if (listing != nullptr) {
        ::closedir(listing);
      }
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::clamp(std::thread::hardware_concurrency(), 1U, 16U); ++i) {
    threads.emplace_back(some);
  }
}

/// Reads all files and drops them from the page cache; returns their number.
std::uint64_t read_files(const fs::path& blobs) {
  std::atomic<std::uint64_t> files{0};
  each_file(blobs, [&](int fd) {
    thread_local std::vector<char> buffer(1 << 20);
    while (::read(fd, buffer.data(), buffer.size()) > 0) {
    }
    ++files;
  });
  return files;
}

/// Measures verifying and reading alternately. Returns false when they did not see all keys.
bool measure_verify(cache::Store& store, const fs::path& blobs, std::uint64_t keys, int rounds,
                    nlohmann::json& result) {
  bool right = true;
  ::sync();  // pages not yet written cannot be dropped
  for (const bool cold : {false, true}) {
    double verify_s = std::numeric_limits<double>::infinity();
    double reading_s = verify_s;
    for (int round = 0; round < rounds; ++round) {
      const auto forget = [&] {
        cold ? each_file(blobs, [](int fd) { ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); })
             : static_cast<void>(read_files(blobs));
      };
      forget();
      reading_s = std::min(reading_s, seconds_of([&] { right = read_files(blobs) == keys && right; }));
      forget();
      verify_s = std::min(verify_s, seconds_of([&] { right = store.verify().checked == keys && right; }));
    }
    const char* how = cold ? "cold_" : "";
    result[fmt::format("{}verify_s", how)] = verify_s;
    result[fmt::format("{}reading_s", how)] = reading_s;
    result[fmt::format("{}verify_of_reading", how)] = verify_s / reading_s;
  }
  return right;
}

struct Arguments {
  std::string folder;
  std::uint64_t keys = 20'000;
  std::uint64_t bytes = 1000;
  int rounds = 3;
  bool index_only = false;
  /// The number of keys that have files.
  std::uint64_t files() const { return index_only ? std::min(keys, kSamples) : keys; }
};

nlohmann::json measure(const Arguments& arguments) {
  const fs::path folder = arguments.folder;
  const std::uint64_t keys = arguments.keys;
  nlohmann::json result;
  const std::uint64_t before = resident_bytes();
  std::optional<cache::Store> store;
  result["open_ms"] = 1e3 * seconds_of([&] { store.emplace(options_of(folder, cache::Durability::kProcess, 0)); });
  result["first_count_ms"] = 1e3 * seconds_of([&] { store->statistics(); });
  result["count_us"] = 1e6 * seconds_of([&] {
                         for (int i = 0; i < 100; ++i) {
                           store->statistics();
                         }
                       }) /
                       100;
  bool right = store->statistics().entries == keys;
  std::mt19937_64 random(1);
  std::uint64_t found = 0;
  const auto get_us = [&](std::uint64_t first) {
    return 1e6 * seconds_of([&] {
             for (std::uint64_t i = 0; i < kSamples; ++i) {
               found += store->get(key_of_number(first + random() % arguments.files())) ? 1 : 0;
             }
           }) /
           kSamples;
  };
  result["get_present_us"] = get_us(0);
  right = right && found == kSamples;
  result["get_absent_us"] = get_us(std::uint64_t{1} << 40);
  right = right && found == kSamples;
  const std::uint64_t after = resident_bytes();
  result["memory_bytes_a_key"] = static_cast<double>(after > before ? after - before : 0) / static_cast<double>(keys);
  result["memory_MB"] = static_cast<double>(after) / 1e6;
  std::uint64_t index_bytes = 0;
  for (const char* end : {"", "-wal"}) {
    index_bytes += size_of_file(folder / "v1" / (cache::detail::Index::file_name() + end));
  }
  result["index_bytes_a_key"] = static_cast<double>(index_bytes) / static_cast<double>(keys);
  if (!arguments.index_only) {
    right = measure_verify(*store, folder / "v1/blobs", keys, arguments.rounds, result) && right;
  }
  const std::vector<cache::Tensor> values = {
      {"values", cache::DType::kU8, {arguments.bytes}, std::vector<std::byte>(arguments.bytes)}};
  constexpr std::uint64_t kPuts = 1000;
  for (const bool there : {false, true}) {  // the second pass removes the entries again
    const double all_s = seconds_of([&] {
      for (std::uint64_t i = 0; i < kPuts; ++i) {
        const cache::Key key = key_of_number((std::uint64_t{1} << 41) + i);
        right = (there ? store->erase(key) : store->put(key, values).stored()) && right;
      }
    });
    result[there ? "erase_us" : "put_us"] = 1e6 * all_s / kPuts;
  }
  result["keys"] = store->statistics().entries;
  result["right"] = right && store->statistics().entries == keys;
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What the feature cache costs with very many keys");
  Arguments arguments;
  bool json = false;
  app.add_option("--folder", arguments.folder);
  app.add_option("--keys", arguments.keys);
  app.add_option("--bytes", arguments.bytes);
  app.add_option("--rounds", arguments.rounds)->check(CLI::PositiveNumber);
  app.add_flag("--index-only", arguments.index_only);
  app.add_flag("--json", json, "The output is JSON in any case");
  CLI11_PARSE(app, argc, argv);
  std::optional<TemporaryFolder> scratch;
  if (arguments.folder.empty()) {
    scratch.emplace("unidle-bench-keys");
    arguments.folder = (scratch->path() / "cache").string();
  }
  std::uint64_t there = 0;
  if (fs::exists(arguments.folder)) {
    there = cache::Store(options_of(arguments.folder, cache::Durability::kProcess, 0)).statistics().entries;
  }
  const double fill_s = seconds_of([&] {
    if (const pid_t child = ::fork(); child == 0) {  // so that memory is measured in a process that only reads
      if (arguments.index_only && there < arguments.keys) {
        fill_index(arguments.folder, arguments.keys - arguments.files(), arguments.bytes);
        there = 0;
      }
      fill(arguments.folder, there, arguments.files(), arguments.bytes);
      ::_exit(0);
    } else {
      ::waitpid(child, nullptr, 0);
    }
  });
  nlohmann::json result = measure(arguments);
  const std::uint64_t filled = arguments.keys > there ? arguments.keys - there : 0;
  result["fill_us_a_key"] = filled > 0 ? 1e6 * fill_s / static_cast<double>(filled) : 0;
  fmt::print("{}\n", result.dump());
  return result["right"] ? 0 : 1;
}
