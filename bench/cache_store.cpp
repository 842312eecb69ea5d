// The feature cache alone: the cost of getting and putting an entry. Without WORK runs all of them, in a temporary
// folder.
//   cache_store [WORK FOLDER] [--entries N] [--bytes N] [--operations N] [--sync] [--first N]
// WORK: put (new entries), many (new entries, all at once), hot (the same few entries repeatedly), cold (each entry
// once, opened and checked each time), get (any entry, those of this process stay mapped), hits (hit rate on a trace).
// Prints one line of JSON: {"work", "operations", "seconds", ...}. bench/cache_peers.py compares it with peers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <list>
#include <nlohmann/json.hpp>
#include <random>
#include <unordered_map>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/cache/store.h"

namespace {

using namespace unidle;
using cache::DType;
using cache::Key;

struct Arguments {
  std::string work;
  std::string folder;
  std::uint64_t entries = 1000;
  std::uint64_t bytes = 10'000;
  std::uint64_t operations = 1000;
  std::uint64_t first = 0;
  bool sync = false;
};

Key bench_key(std::uint64_t number) { return cache::key_of_name(std::to_string(number)); }

std::vector<cache::Tensor> bench_tensors(std::uint64_t number, std::uint64_t bytes) {
  std::vector<std::byte> data(bytes, static_cast<std::byte>(number * 37 + 1));
  return {{"values", DType::kU8, {bytes}, std::move(data)}};
}

/// Reads a byte of each page, as a user of the entry does.
std::uint64_t touch(const cache::Entry& entry) {
  std::uint64_t sum = 0;
  for (const cache::TensorView& tensor : entry.tensors()) {
    for (std::size_t i = 0; i < tensor.data.size(); i += 4096) {
      sum += static_cast<std::uint64_t>(tensor.data[i]);
    }
  }
  return sum;
}

nlohmann::json measure(const Arguments& arguments) {
  cache::Options options;
  options.path = arguments.folder;
  options.durability = arguments.sync ? cache::Durability::kPower : cache::Durability::kProcess;
  if (arguments.work == "cold") {
    options.hot_bytes = 0;
  }
  cache::Store store(options);
  std::mt19937_64 random(arguments.first + 1);
  std::uint64_t sum = 0;
  std::uint64_t missing = 0;
  std::vector<std::vector<cache::Tensor>> values;
  const bool puts = arguments.work == "put" || arguments.work == "many";
  for (std::uint64_t i = 0; puts && i < arguments.operations; ++i) {
    values.push_back(bench_tensors(arguments.first + i, arguments.bytes));
  }
  if (arguments.work == "hot" || arguments.work == "get") {
    for (std::uint64_t i = 0; i < arguments.entries; ++i) {
      store.get(bench_key(i));
    }
  }
  const std::int64_t start_ns = system_clock().now_ns();
  if (arguments.work == "many") {
    std::vector<cache::NewEntry> entries;
    for (std::uint64_t i = 0; i < arguments.operations; ++i) {
      entries.push_back({bench_key(arguments.first + i), cache::views_of(values[i])});
    }
    missing = arguments.operations - store.put_many(entries);
  }
  for (std::uint64_t i = 0; arguments.work != "many" && i < arguments.operations; ++i) {
    if (arguments.work == "put") {
      missing += store.put(bench_key(arguments.first + i), std::move(values[i])).stored() ? 0 : 1;
      continue;
    }
    const std::uint64_t number = arguments.work == "cold" ? i % arguments.entries : random() % arguments.entries;
    const auto entry = store.get(bench_key(number));
    missing += entry ? 0 : 1;
    sum += entry ? touch(*entry) : 0;
  }
  const std::int64_t end_ns = system_clock().now_ns();
  return {{"work", arguments.work},
          {"operations", arguments.operations},
          {"seconds", seconds(end_ns - start_ns)},
          {"us", seconds(end_ns - start_ns) * 1e6 / static_cast<double>(arguments.operations)},
          {"missing", missing},
          {"sum", sum}};
}

/// Zipf-like popularity with scans in between: a third of all reads is of data that is read only once.
nlohmann::json measure_hits(const Arguments& arguments) {
  cache::Options options;
  options.path = arguments.folder;
  options.durability = cache::Durability::kProcess;
  options.hot_entries = 0;
  options.hot_bytes = 0;
  const std::uint64_t room = arguments.entries / 10;
  options.max_bytes = room * (arguments.bytes + 192);
  cache::Store store(options);
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::uint64_t hits = 0;
  std::uint64_t reused = 0;
  std::uint64_t scanned = 1'000'000'000;
  // The same trace for the policies to compare with: least recently used, and first in first out.
  struct Queue {
    std::list<std::uint64_t> order;
    std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> places;
    std::uint64_t hits = 0;
    void use(std::uint64_t number, std::size_t most, bool to_end) {
      const auto found = places.find(number);
      if (found != places.end()) {
        ++hits;
        if (to_end) {
          order.splice(order.end(), order, found->second);
        }
        return;
      }
      if (order.size() >= most) {
        places.erase(order.front());
        order.pop_front();
      }
      places[number] = order.insert(order.end(), number);
    }
  } lru, fifo;
  for (std::uint64_t i = 0; i < arguments.operations; ++i) {
    std::uint64_t number = 0;
    if (i / 2000 % 3 == 2) {
      number = scanned++;
    } else {
      number = static_cast<std::uint64_t>(std::pow(static_cast<double>(arguments.entries), uniform(random))) - 1;
      ++reused;
    }
    lru.use(number, room, true);
    fifo.use(number, room, false);
    bool computed = false;
    store.get_or_compute(bench_key(number), [&] {
      computed = true;
      return bench_tensors(number, arguments.bytes);
    });
    hits += computed ? 0 : 1;
  }
  const auto share = [&](std::uint64_t count) { return static_cast<double>(count) / static_cast<double>(reused); };
  return {{"work", "hits"},
          {"reads", reused},
          {"s3_fifo", share(hits)},
          {"lru", share(lru.hits)},
          {"fifo", share(fifo.hits)}};
}

}  // namespace

namespace {

nlohmann::json measure_any(const Arguments& arguments) {
  return arguments.work == "hits" ? measure_hits(arguments) : measure(arguments);
}

/// Runs each with enough operations for a stable figure.
int measure_all(Arguments arguments) {
  const TemporaryFolder folder("unidle-bench-cache");
  bool good = true;
  for (const auto& [work, operations] :
       {std::pair("put", 1000), {"many", 1000}, {"hot", 200'000}, {"cold", 1000}, {"get", 200'000}, {"hits", 20'000}}) {
    arguments.work = work;
    arguments.folder = (folder.path() / (arguments.work == "hits" ? "hits" : "cache")).string();
    arguments.operations = static_cast<std::uint64_t>(operations);
    arguments.first = arguments.work == "many" ? arguments.entries : 0;
    const nlohmann::json result = measure_any(arguments);
    good = good && result.value("missing", 0) == 0;
    fmt::print("{}\n", result.dump());
  }
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("What the feature cache costs");
  CLI::Option* work =
      app.add_option("work", arguments.work)->check(CLI::IsMember({"put", "many", "hot", "cold", "get", "hits"}));
  work->needs(app.add_option("folder", arguments.folder));
  app.add_option("--entries", arguments.entries);
  app.add_option("--bytes", arguments.bytes);
  app.add_option("--operations", arguments.operations);
  app.add_option("--first", arguments.first);
  app.add_flag("--sync", arguments.sync);
  bool json = false;
  app.add_flag("--json", json, "The output is JSON in any case");
  CLI11_PARSE(app, argc, argv);
  if (arguments.work.empty()) {
    return measure_all(arguments);
  }
  const nlohmann::json result = measure_any(arguments);
  fmt::print("{}\n", result.dump());
  return result.value("missing", 0) == 0 ? 0 : 1;
}
