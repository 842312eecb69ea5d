#define UNIDLE_API __attribute__((visibility("default")))

#include "unidle/data/capi/unidle_data.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/data/buffer_pool.h"
#include "unidle/data/capi/guarded.h"
#include "unidle/data/loader.h"
#include "unidle/data/run_order.h"
#include "unidle/data/source_kind.h"
#include "unidle/data/subset.h"

using unidle::Error;
using unidle::ErrorCode;
using unidle::capi::fail;
using unidle::capi::guarded;
using unidle::capi::last_failure;
namespace data = unidle::data;

struct unidle_source {
  std::unique_ptr<data::Source> source;
  const unidle_source* of = nullptr;  // whose subset it is
  int process = ::getpid();
  /// Loaders whose threads read it. A child that was forked meanwhile has the number, and locks that they may hold.
  mutable std::atomic<int> readers = 0;

  explicit unidle_source(std::unique_ptr<data::Source> the_source, const unidle_source* whole = nullptr)
      : source(std::move(the_source)), of(whole) {}
  bool was_read_at_fork() const {
    return (process != ::getpid() && readers > 0) || (of != nullptr && of->was_read_at_fork());
  }
  void count_readers(int more) const {
    readers += more;
    if (of != nullptr) {
      of->count_readers(more);
    }
  }
};

struct unidle_order {
  std::unique_ptr<data::Order> order;
};

struct unidle_loader {
  int process;
  const data::Source* source;
  const unidle_source* counted;  // where its threads are told; null without threads
  std::shared_ptr<data::BufferPool> pool;
  std::unique_ptr<data::Loader> loader;
  std::vector<std::vector<std::int64_t>> extents;  // a field, of the last batch
};

namespace {

unidle_dl_type dl_type(data::DType dtype) {
  const auto bits = static_cast<std::uint8_t>(data::size_of(dtype) * 8);
  switch (dtype) {
    case data::DType::kBool: return {6, bits, 1};
    case data::DType::kU8:
    case data::DType::kU16:
    case data::DType::kU32:
    case data::DType::kU64: return {1, bits, 1};
    case data::DType::kI8:
    case data::DType::kI16:
    case data::DType::kI32:
    case data::DType::kI64: return {0, bits, 1};
    case data::DType::kF16:
    case data::DType::kF32:
    case data::DType::kF64: return {2, bits, 1};
    case data::DType::kBF16: return {4, bits, 1};
  }
  return {0, bits, 1};
}

constexpr data::DType kDTypes[] = {data::DType::kBool, data::DType::kU8,  data::DType::kI8,   data::DType::kU16,
                                   data::DType::kI16,  data::DType::kU32, data::DType::kI32,  data::DType::kU64,
                                   data::DType::kI64,  data::DType::kF16, data::DType::kBF16, data::DType::kF32,
                                   data::DType::kF64};

data::ArrayView view_of(const unidle_dl_tensor& tensor) {
  data::ArrayView view;
  bool known = false;
  for (const data::DType dtype : kDTypes) {
    const unidle_dl_type type = dl_type(dtype);
    if (type.code == tensor.dtype.code && type.bits == tensor.dtype.bits && tensor.dtype.lanes == 1) {
      view.dtype = dtype;
      known = true;
    }
  }
  if (!known || tensor.device.device_type != 1 || tensor.ndim < 0) {
    throw Error(ErrorCode::kUsage, "array", "expected numbers or truths of up to 8 bytes in the host's memory");
  }
  const auto size = static_cast<std::int64_t>(data::size_of(view.dtype));
  view.data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  view.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  view.strides.resize(view.shape.size());
  std::int64_t dense = size;
  for (std::size_t axis = view.shape.size(); axis-- > 0;) {
    view.strides[axis] = tensor.strides != nullptr ? tensor.strides[axis] * size : dense;
    dense *= view.shape[axis];
  }
  return view;
}

/// A tensor that has memory of a loader's pool.
struct Taken {
  unidle_dl_managed managed{};
  std::shared_ptr<data::BufferPool> pool;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;

  ~Taken() {
    if (memory != nullptr) {
      pool->release(memory, bytes);
    }
  }
  static void dispose(unidle_dl_managed* managed) { delete static_cast<Taken*>(managed->manager); }
};

std::unique_ptr<Taken> take(unidle_loader& loader, data::Batch& batch, std::size_t index) {
  const data::Field& field = loader.source->fields()[index];
  auto taken = std::make_unique<Taken>();
  taken->pool = loader.pool;
  taken->bytes = loader.loader->field_bytes(index);
  taken->shape.push_back(batch.samples());
  taken->shape.insert(taken->shape.end(), field.shape.begin(), field.shape.end());
  if (field.ragged) {
    taken->shape[1] = batch.extent(index);
  }
  taken->strides.resize(taken->shape.size());
  std::int64_t dense = 1;
  for (std::size_t axis = taken->shape.size(); axis-- > 0;) {
    taken->strides[axis] = dense;
    dense *= taken->shape[axis];
  }
  taken->memory = batch.take(index);
  taken->managed = {{taken->memory,
                     {1, 0},
                     static_cast<std::int32_t>(taken->shape.size()),
                     dl_type(field.dtype),
                     taken->shape.data(),
                     taken->strides.data(),
                     0},
                    taken.get(),
                    &Taken::dispose};
  return taken;
}

bool is_own(const unidle_loader* loader) {
  if (loader->process == ::getpid()) {
    return true;
  }
  fail(
      UNIDLE_DATA_FORKED,
      "loader: was made before this process was forked, and its threads are in the parent (make it in the process that "
      "uses it, or start processes by spawn)");
  return false;
}

data::LoaderOptions loader_options(const char* text) {
  const nlohmann::json values = unidle::parse_json(text);
  if (!values.is_object()) {
    throw Error(ErrorCode::kUsage, "loader", "options: expected a JSON object");
  }
  data::SourceOptions options("loader", values);
  data::LoaderOptions wanted;
  wanted.batch = options.integer("batch", wanted.batch);
  wanted.workers = options.small("workers", data::kAutoWorkers);
  wanted.prefetch = options.small("prefetch", wanted.prefetch);
  wanted.max_bytes = options.integer("max_bytes", wanted.max_bytes);
  wanted.seed = static_cast<std::uint64_t>(options.integer("seed", 0));
  wanted.shuffle = options.flag("shuffle", wanted.shuffle);
  wanted.start_sample = options.integer("start_sample", 0);
  wanted.rank = options.small("rank", wanted.rank);
  wanted.world = options.small("world", wanted.world);
  using Ends = std::pair<const char*, data::EpochEnd>;
  wanted.epoch_end =
      options.one_of("epoch_end", {Ends{"short", data::EpochEnd::kShort}, Ends{"drop", data::EpochEnd::kDrop},
                                   Ends{"span", data::EpochEnd::kSpan}});
  using Policy = std::pair<const char*, data::ErrorPolicy>;
  wanted.on_error =
      options.one_of("on_error", {Policy{"fail", data::ErrorPolicy::kFail}, Policy{"skip", data::ErrorPolicy::kSkip},
                                  Policy{"replace", data::ErrorPolicy::kReplace}});
  options.done();
  return wanted;
}

/// What a tensor in one piece holds.
template <typename Value>
std::span<const Value> values_of(const unidle_dl_tensor* tensor, data::DType dtype) {
  if (tensor == nullptr) {
    throw Error(ErrorCode::kUsage, "order", "values: expected an array");
  }
  const data::ArrayView view = view_of(*tensor);
  if (view.dtype != dtype || view.shape.size() != 1 || !view.contiguous()) {
    throw Error(ErrorCode::kUsage, "order",
                fmt::format("values: expected {} [items], one after the other", data::name_of(dtype)));
  }
  return {reinterpret_cast<const Value*>(view.data), static_cast<std::size_t>(view.shape[0])};
}

std::unique_ptr<data::Order> open_order(std::string_view kind, const char* text, const unidle_dl_tensor* values) {
  const nlohmann::json given = unidle::parse_json(text);
  data::SourceOptions options("loader", given);
  if (kind == "weights") {
    options.done();
    return std::make_unique<data::WeightedOrder>(values_of<double>(values, data::DType::kF64));
  }
  if (kind == "runs") {
    const std::int64_t items = options.integer("items", 0);
    const std::int64_t run = options.integer("run", 1);
    const std::int64_t window = options.integer("window", 1);
    options.done();
    return std::make_unique<data::RunOrder>(items, run, window);
  }
  if (kind != "groups") {
    throw Error(ErrorCode::kUsage, "order " + std::string(kind), "there is no such order");
  }
  const std::int64_t batch = options.integer("batch", 1);
  const bool shuffle = options.flag("shuffle", true);
  const bool drop_last = options.flag("drop_last", false);
  options.done();
  return std::make_unique<data::GroupedOrder>(values_of<std::int64_t>(values, data::DType::kI64), batch, shuffle,
                                              drop_last);
}

}  // namespace

extern "C" {

UNIDLE_API int unidle_data_version(void) { return UNIDLE_DATA_VERSION; }

UNIDLE_API int unidle_data_error(const char** text) {
  if (text != nullptr) {
    *text = last_failure().text.c_str();
  }
  return last_failure().code;
}

UNIDLE_API unidle_source* unidle_source_open(const char* kind, const char* options, const unidle_dl_tensor* arrays,
                                             size_t count) {
  return guarded<unidle_source*>(nullptr, [&] {
    std::vector<data::ArrayView> views;
    for (size_t i = 0; i < count; ++i) {
      views.push_back(view_of(arrays[i]));
    }
    return new unidle_source(data::open_source(kind, options, views));
  });
}

UNIDLE_API void unidle_source_close(unidle_source* source) { delete source; }

UNIDLE_API unidle_source* unidle_source_subset(const unidle_source* source, const int64_t* items, size_t count) {
  return guarded<unidle_source*>(nullptr, [&] {
    return new unidle_source(
        std::make_unique<data::Subset>(*source->source, std::vector<std::int64_t>(items, items + count)), source);
  });
}

UNIDLE_API char* unidle_source_describe(const unidle_source* source) {
  return guarded<char*>(nullptr, [&] {
    nlohmann::json facts = nlohmann::json::parse(source->source->describe());
    facts["items"] = source->source->items();
    facts["samples_per_item"] = source->source->samples_per_item();
    facts["run"] = source->source->run();
    for (const data::Field& field : source->source->fields()) {
      facts["fields"].push_back({{"name", field.name},
                                 {"dtype", data::name_of(field.dtype)},
                                 {"shape", field.shape},
                                 {"ragged", field.ragged}});
    }
    const std::string text = unidle::json_text(facts, -1);
    char* copy = static_cast<char*>(std::malloc(text.size() + 1));
    if (copy == nullptr) {
      throw std::bad_alloc();
    }
    std::memcpy(copy, text.c_str(), text.size() + 1);
    return copy;
  });
}

UNIDLE_API void unidle_data_free(char* text) { std::free(text); }

UNIDLE_API unidle_order* unidle_order_open(const char* kind, const char* options, const unidle_dl_tensor* values) {
  return guarded<unidle_order*>(nullptr, [&] { return new unidle_order{open_order(kind, options, values)}; });
}

UNIDLE_API void unidle_order_close(unidle_order* order) { delete order; }

UNIDLE_API int64_t unidle_order_samples(const unidle_order* order) { return order->order->items(); }

UNIDLE_API unidle_loader* unidle_loader_open(const unidle_source* source, const char* options) {
  return unidle_loader_open_ordered(source, options, nullptr);
}

UNIDLE_API unidle_loader* unidle_loader_open_ordered(const unidle_source* source, const char* options,
                                                     const unidle_order* order) {
  if (source->was_read_at_fork()) {
    fail(UNIDLE_DATA_FORKED,
         "source: a loader of the parent was reading it when this process was forked, and may hold its locks (make "
         "source and loader in the process that uses them, or start processes by spawn)");
    return nullptr;
  }
  return guarded<unidle_loader*>(nullptr, [&] {
    data::LoaderOptions wanted = loader_options(options);
    auto made = std::make_unique<unidle_loader>();
    made->process = ::getpid();
    made->source = source->source.get();
    made->pool = std::make_shared<data::BufferPool>();
    wanted.allocator = made->pool.get();
    wanted.order = order != nullptr ? order->order.get() : nullptr;
    made->loader = std::make_unique<data::Loader>(*made->source, wanted);
    made->counted = made->loader->workers() > 0 ? source : nullptr;
    if (made->counted != nullptr) {
      made->counted->count_readers(1);
    }
    return made.release();
  });
}

UNIDLE_API void unidle_loader_close(unidle_loader* loader) {
  // A child has the parent's memory without its threads: nothing can be stopped, and nothing is waited for.
  if (loader != nullptr && loader->process == ::getpid()) {
    loader->loader.reset();
    if (loader->counted != nullptr) {
      loader->counted->count_readers(-1);
    }
    loader->pool->close();
    delete loader;
  }
}

UNIDLE_API int64_t unidle_loader_batches_per_epoch(const unidle_loader* loader) {
  return loader->loader->batches_per_epoch();
}

UNIDLE_API int64_t unidle_loader_batches_in_first_epoch(const unidle_loader* loader) {
  return loader->loader->batches_in_first_epoch();
}

UNIDLE_API int unidle_loader_workers(const unidle_loader* loader) { return loader->loader->workers(); }

UNIDLE_API int unidle_loader_pace_now(const unidle_loader* loader, unidle_loader_pace* pace) {
  if (!is_own(loader)) {
    return -1;
  }
  *pace = {loader->loader->active_workers(), loader->loader->depth()};
  return 1;
}

UNIDLE_API int unidle_loader_next(unidle_loader* loader, int64_t limit_ms, unidle_dl_managed** fields,
                                  unidle_batch_facts* facts) {
  if (!is_own(loader)) {
    return -1;
  }
  return guarded(-1, [&] {
    const std::int64_t start = unidle::system_clock().now_ns();
    *facts = {};
    facts->ready = loader->loader->ready() ? 1 : 0;
    if (limit_ms >= 0 && !loader->loader->wait(std::chrono::milliseconds(limit_ms))) {
      facts->waited_ns = unidle::system_clock().now_ns() - start;
      return 0;
    }
    data::Batch batch = loader->loader->next();
    const std::size_t count = loader->source->fields().size();
    std::vector<std::unique_ptr<Taken>> taken;
    loader->extents.resize(count);
    for (std::size_t index = 0; index < count; ++index) {
      taken.push_back(take(*loader, batch, index));
      const std::span<const std::int64_t> extents = batch.extents(index);
      loader->extents[index].assign(extents.begin(), extents.end());
    }
    facts->samples = batch.places();
    facts->epoch = batch.epoch();
    facts->epoch_offset = batch.epoch_offset();
    facts->skipped = loader->loader->skipped();
    facts->waited_ns = unidle::system_clock().now_ns() - start;
    for (std::size_t index = 0; index < count; ++index) {
      fields[index] = &taken[index].release()->managed;
    }
    return 1;
  });
}

UNIDLE_API int64_t unidle_loader_extents(const unidle_loader* loader, size_t field, const int64_t** extents) {
  if (!is_own(loader)) {
    return -1;
  }
  if (field >= loader->extents.size()) {
    *extents = nullptr;
    return 0;
  }
  *extents = loader->extents[field].data();
  return static_cast<std::int64_t>(loader->extents[field].size());
}

UNIDLE_API int unidle_loader_work(const unidle_loader* loader, unidle_loader_costs* costs) {
  if (!is_own(loader)) {
    return -1;
  }
  const data::LoaderWork work = loader->loader->work();
  *costs = {work.samples, work.busy_ns, work.slowest_ns, work.cpu_ns};
  return 1;
}

UNIDLE_API int unidle_loader_stages(const unidle_loader* loader, int64_t ns[4]) {
  if (!is_own(loader)) {
    return -1;
  }
  static_assert(data::kStages == 4);
  const data::LoaderWork work = loader->loader->work();
  std::copy(work.stage_ns.begin(), work.stage_ns.end(), ns);
  return 1;
}

}  // extern "C"
