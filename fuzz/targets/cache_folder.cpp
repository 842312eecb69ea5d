// The files that a cache keeps beside its entries. The first byte chooses which one the rest is. Whatever it holds,
// what was stored is found, and the cache goes on.
#include <algorithm>
#include <array>
#include <span>
#include "fuzz.h"
#include "unidle/cache/store.h"

namespace unidle::fuzz::targets {

namespace {

constexpr std::uint64_t kEntries = 4;

cache::Key cache_key(std::uint64_t number) {
  return cache::KeyBuilder().integer("number", static_cast<std::int64_t>(number)).finish();
}

std::vector<cache::Tensor> cache_value(std::uint64_t number) {
  std::vector<cache::Tensor> tensors;
  tensors.push_back(cache::make_tensor<std::uint64_t>("number", cache::DType::kU64, {}, std::span(&number, 1)));
  return tensors;
}

bool holds(const std::optional<cache::Entry>& entry, std::uint64_t number) {
  const cache::TensorView* found = entry ? entry->find("number") : nullptr;
  return found != nullptr && std::ranges::equal(found->data, std::as_bytes(std::span(&number, 1)));
}

cache::Options cache_options() {
  cache::Options options;
  options.path = scratch_folder() / "cache";
  options.durability = cache::Durability::kProcess;
  options.tell = [](std::string_view text) { require(text.find('\n') == std::string_view::npos); };
  return options;
}

void remove_beside_entries() {
  for (const char* name :
       {"unidle-cache.json", "v1/board", "v1/index-2.db", "v1/index-2.db-wal", "v1/index-2.db-shm"}) {
    std::filesystem::remove(cache_options().path / name);
  }
  std::filesystem::remove_all(cache_options().path / "v1/damaged");
}

void use_cache() {
  cache::Store store(cache_options());
  for (std::uint64_t number = 0; number < kEntries; ++number) {
    require(holds(store.get(cache_key(number)), number));
  }
  require(holds(store.put(cache_key(kEntries), cache_value(kEntries)), kEntries));
  store.statistics();
  store.prune();
  store.erase(cache_key(kEntries));
}

void run_cache_folder(std::string_view bytes) {
  if (bytes.empty()) {
    return;
  }
  remove_beside_entries();
  {
    cache::Store store(cache_options());
    for (std::uint64_t number = 0; number < kEntries; ++number) {
      store.get_or_compute(cache_key(number), [&] { return cache_value(number); });
    }
  }
  constexpr std::array<const char*, 3> kFiles = {"cache/unidle-cache.json", "cache/v1/index-2.db", "cache/v1/board"};
  remove_beside_entries();
  put(kFiles[static_cast<unsigned char>(bytes[0]) % kFiles.size()], bytes.substr(1));
  may_refuse([&] { use_cache(); }, {ErrorCode::kUsage});
}

}  // namespace

const Target& cache_folder() {
  static const Target kTarget = {"cache_folder", run_cache_folder};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
