#define UNIDLE_API __attribute__((visibility("default")))

#include "unidle/cache/capi/unidle_cache.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/cache/store.h"
#include "unidle/data/capi/guarded.h"

using unidle::Error;
using unidle::ErrorCode;
using unidle::capi::guarded;
namespace cache = unidle::cache;

struct unidle_cache {
  cache::Store store;
};

struct unidle_claim {
  cache::Claim claim;
};

struct unidle_entry {
  cache::Entry entry;
  std::string layout;
};

namespace {

cache::Key key_of_bytes(const void* bytes) {
  cache::Key key;
  std::memcpy(key.bytes.data(), bytes, key.bytes.size());
  return key;
}

cache::Key named(int kind, const void* name, std::size_t size) {
  const std::string_view text(static_cast<const char*>(name), size);
  switch (kind) {
    case UNIDLE_CACHE_NAME: return cache::key_of_name(text);
    case UNIDLE_CACHE_BYTES: return cache::key_of_bytes_name(text);
    case UNIDLE_CACHE_KEY:
      if (size == cache::Key{}.bytes.size()) {
        return key_of_bytes(name);
      }
      break;
    default: break;
  }
  throw Error(ErrorCode::kUsage, "cache key", "expected a name, or a key of 32 bytes");
}

template <typename Number>
void append_number(std::string& text, Number number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void hand_out(cache::Entry entry, unidle_found& found) {
  auto held = std::make_unique<unidle_entry>(unidle_entry{std::move(entry), {}});
  const std::span<const cache::TensorView> tensors = held->entry.tensors();
  const std::byte* begin = tensors.empty() ? nullptr : tensors.front().data.data();
  const std::byte* end = begin;
  for (const cache::TensorView& tensor : tensors) {
    begin = std::min(begin, tensor.data.data());
    end = std::max(end, tensor.data.data() + tensor.data.size());
  }
  held->layout.reserve(64 * tensors.size());
  for (const cache::TensorView& tensor : tensors) {
    append_number(held->layout, static_cast<std::uint16_t>(tensor.name.size()));
    append_number(held->layout, static_cast<std::uint8_t>(tensor.dtype));
    append_number(held->layout, static_cast<std::uint8_t>(tensor.shape.size()));
    append_number(held->layout, std::uint32_t{0});
    append_number(held->layout, static_cast<std::uint64_t>(tensor.data.data() - begin));
    append_number(held->layout, static_cast<std::uint64_t>(tensor.data.size()));
    for (const std::uint64_t extent : tensor.shape) {
      append_number(held->layout, extent);
    }
    held->layout += tensor.name;
  }
  found.data = begin;
  found.bytes = static_cast<std::uint64_t>(end - begin);
  found.layout = held->layout.data();
  found.layout_bytes = held->layout.size();
  found.entry = held.release();
}

int hand_out_if_there(std::optional<cache::Entry> entry, unidle_found* found) {
  *found = {};
  if (!entry) {
    return 0;
  }
  hand_out(std::move(*entry), *found);
  return 1;
}

cache::TensorView view_of(const unidle_cache_array& array) {
  const auto dtype = cache::dtype_from(array.dtype);
  if (!dtype) {
    throw Error(ErrorCode::kUsage, std::string("array ") + array.name,
                std::string("expected numbers or booleans, found ") + array.dtype);
  }
  cache::TensorView view{array.name, *dtype, {array.shape, array.shape + array.axes}, {}};
  const auto bytes = cache::array_bytes(*dtype, view.shape);
  if (!bytes) {
    throw Error(ErrorCode::kUsage, std::string("array ") + array.name, "is larger than memory can be");
  }
  view.data = {static_cast<const std::byte*>(array.data), static_cast<std::size_t>(*bytes)};
  return view;
}

std::vector<cache::TensorView> views_of(const unidle_cache_array* arrays, std::size_t count) {
  std::vector<cache::TensorView> views;
  views.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    views.push_back(view_of(arrays[i]));
  }
  return views;
}

cache::Options cache_options(const char* path, const char* text) {
  const nlohmann::json given = unidle::parse_json(text);
  cache::Options options;
  options.path = path;
  if (const auto bytes = unidle::whole_in(given, "max_bytes")) {
    if (*bytes < 0) {
      throw Error(ErrorCode::kUsage, "cache option max_bytes", "expected a number of bytes that is not negative");
    }
    options.max_bytes = static_cast<std::uint64_t>(*bytes);
  }
  options.durability = given.value("durable", true) ? cache::Durability::kPower : cache::Durability::kProcess;
  options.create = given.value("create", true);
  options.read_only = given.value("read_only", false);
  if (given.value("quiet", false)) {
    options.tell = [](std::string_view) {};
  }
  return options;
}

template <typename Byte>
Byte* copy_for_caller(const void* from, std::size_t bytes, std::size_t zeros) {
  auto* copy = static_cast<char*>(std::calloc(bytes + zeros, 1));
  if (copy == nullptr) {
    throw std::bad_alloc();
  }
  std::memcpy(copy, from, bytes);
  return reinterpret_cast<Byte*>(copy);
}

}  // namespace

extern "C" {

UNIDLE_API unidle_cache* unidle_cache_open(const char* path, const char* options) {
  return guarded<unidle_cache*>(nullptr, [&] { return new unidle_cache{cache::Store(cache_options(path, options))}; });
}

UNIDLE_API void unidle_cache_close(unidle_cache* cache) { delete cache; }

UNIDLE_API int unidle_cache_key_of(int kind, const void* name, size_t size, uint8_t* key) {
  return guarded(-1, [&] {
    const cache::Key made = named(kind, name, size);
    std::memcpy(key, made.bytes.data(), made.bytes.size());
    return 0;
  });
}

UNIDLE_API int unidle_cache_get(unidle_cache* cache, int kind, const void* name, size_t size, unidle_found* found) {
  return guarded(-1, [&] { return hand_out_if_there(cache->store.get(named(kind, name, size)), found); });
}

UNIDLE_API int unidle_cache_peek(unidle_cache* cache, const uint8_t* key, unidle_found* found) {
  return guarded(-1, [&] { return hand_out_if_there(cache->store.peek(key_of_bytes(key)), found); });
}

UNIDLE_API void unidle_entry_release(unidle_entry* entry) { delete entry; }

UNIDLE_API int unidle_cache_contains(unidle_cache* cache, const uint8_t* key) {
  return guarded(-1, [&] { return cache->store.contains(key_of_bytes(key)) ? 1 : 0; });
}

UNIDLE_API int unidle_cache_erase(unidle_cache* cache, const uint8_t* key) {
  return guarded(-1, [&] { return cache->store.erase(key_of_bytes(key)) ? 1 : 0; });
}

UNIDLE_API int unidle_cache_claim(unidle_cache* cache, const uint8_t* key, unidle_claim** claim) {
  return guarded(-1, [&] {
    auto taken = cache->store.try_claim(key_of_bytes(key));
    *claim = taken ? new unidle_claim{std::move(*taken)} : nullptr;
    return taken ? 1 : 0;
  });
}

UNIDLE_API void unidle_claim_release(unidle_claim* claim) { delete claim; }

UNIDLE_API int unidle_claim_put(unidle_cache* cache, unidle_claim* claim, const unidle_cache_array* arrays,
                                size_t count) {
  return guarded(-1, [&] { return cache->store.put(claim->claim, views_of(arrays, count)) ? 1 : 0; });
}

UNIDLE_API int64_t unidle_cache_put_many(unidle_cache* cache, const unidle_cache_new_entry* entries, size_t count) {
  return guarded<int64_t>(-1, [&] {
    std::vector<cache::NewEntry> all;
    all.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      all.push_back({key_of_bytes(entries[i].key), views_of(entries[i].arrays, entries[i].count)});
    }
    return static_cast<int64_t>(cache->store.try_put_many(all).through);
  });
}

UNIDLE_API int64_t unidle_cache_keys(unidle_cache* cache, int part, uint8_t** keys) {
  return guarded<int64_t>(-1, [&] {
    if (part < 0 || part >= static_cast<int>(cache::Store::kParts)) {
      throw Error(ErrorCode::kUsage, "cache", "has 256 parts");
    }
    const std::vector<cache::Key> found = cache->store.keys(static_cast<std::size_t>(part));
    *keys = copy_for_caller<uint8_t>(found.data(), found.size() * sizeof(cache::Key), 1);
    return static_cast<int64_t>(found.size());
  });
}

UNIDLE_API char* unidle_cache_statistics(unidle_cache* cache) {
  return guarded<char*>(nullptr, [&] {
    const cache::Statistics all = cache->store.statistics();
    nlohmann::json document = {{"entries", all.entries}, {"bytes", all.bytes}, {"named", all.named}};
    document["max_bytes"] = all.max_bytes ? nlohmann::json(*all.max_bytes) : nlohmann::json();
    const std::string text = unidle::json_text(document, -1);
    return copy_for_caller<char>(text.data(), text.size(), 1);
  });
}

}  // extern "C"
