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
#include <optional>
#include <string>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/data/buffer_pool.h"
#include "unidle/data/capi/guarded.h"
#include "unidle/data/capi/tensors.h"
#include "unidle/data/loader.h"
#include "unidle/data/run_order.h"
#include "unidle/data/source_kind.h"
#include "unidle/data/subset.h"
#include "unidle/telemetry/host.h"

using unidle::Error;
using unidle::ErrorCode;
using unidle::capi::fail;
using unidle::capi::guarded;
using unidle::capi::last_failure;
using unidle::capi::TakenTensor;
using unidle::capi::view_of;
namespace data = unidle::data;

struct unidle_source {
  std::unique_ptr<data::Source> source;
  const unidle_source* of = nullptr;  // the source of this subset
  int process = ::getpid();
  /// Loaders whose threads read this source. A forked child inherits the count, and locks that these threads may hold.
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
  const unidle_source* counted;  // the source that counts this loader as a reader; null without threads
  std::shared_ptr<data::BufferPool> pool;
  std::unique_ptr<data::Loader> loader;
  std::optional<data::Batch> kept;  // a batch that could not be handed over for lack of memory: delivered next
  std::vector<std::vector<std::int64_t>> extents;  // per field, of the last batch
};

namespace {

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

/// The contents of a contiguous tensor.
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
    throw Error(ErrorCode::kUsage, "order " + std::string(kind), "unknown order");
  }
  const std::int64_t batch = options.integer("batch", 1);
  const bool shuffle = options.flag("shuffle", true);
  const bool drop_last = options.flag("drop_last", false);
  options.done();
  return std::make_unique<data::GroupedOrder>(values_of<std::int64_t>(values, data::DType::kI64), batch, shuffle,
                                              drop_last);
}

void fill_facts(const unidle_loader* loader, const data::Batch& batch, unidle_batch_facts* facts) {
  facts->samples = batch.places();
  facts->epoch = batch.epoch();
  facts->epoch_offset = batch.epoch_offset();
  facts->skipped = loader->loader->skipped();
}

}  // namespace

extern "C" {

UNIDLE_API int unidle_data_version(void) { return UNIDLE_DATA_VERSION; }

UNIDLE_API int unidle_usable_cpus(void) {
  return guarded(1, [] { return unidle::telemetry::usable_cpus(); });
}

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
  return unidle_loader_open_ordered(source, options, nullptr, nullptr);
}

UNIDLE_API unidle_loader* unidle_loader_open_ordered(const unidle_source* source, const char* options,
                                                     const unidle_order* order, unidle_lender lender) {
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
    made->pool = std::make_shared<data::BufferPool>(lender);
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
  // A forked child has the memory without the threads: there is nothing to stop or join.
  if (loader != nullptr && loader->process == ::getpid()) {
    loader->kept.reset();
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
    facts->ready = loader->kept.has_value() || loader->loader->ready() ? 1 : 0;
    if (limit_ms == 0 && facts->ready == 0) {
      return 0;
    }
    if (!loader->kept.has_value()) {
      if (limit_ms >= 0 && !loader->loader->wait(std::chrono::milliseconds(limit_ms))) {
        facts->waited_ns = unidle::system_clock().now_ns() - start;
        return 0;
      }
      loader->kept = loader->loader->next();
    }
    data::Batch& batch = *loader->kept;
    const std::vector<data::Field>& of = loader->source->fields();
    loader->extents.resize(of.size());
    for (std::size_t index = 0; index < of.size(); ++index) {
      const std::span<const std::int64_t> extents = batch.extents(index);
      loader->extents[index].assign(extents.begin(), extents.end());
    }
    std::vector<TakenTensor> taken = unidle::capi::take_fields(batch, of, *loader->loader, loader->pool);
    fill_facts(loader, batch, facts);
    facts->waited_ns = unidle::system_clock().now_ns() - start;
    loader->kept.reset();
    for (std::size_t index = 0; index < of.size(); ++index) {
      fields[index] = taken[index].release();
    }
    return 1;
  });
}

UNIDLE_API int unidle_loader_pass_over(unidle_loader* loader, unidle_batch_facts* facts) {
  if (!is_own(loader)) {
    return -1;
  }
  return guarded(-1, [&] {
    *facts = {};
    const std::optional<data::Batch> batch = loader->loader->pass_over();
    if (!batch) {
      return 0;
    }
    fill_facts(loader, *batch, facts);
    return 1;
  });
}

UNIDLE_API int unidle_tensor_take_back(unidle_dl_managed* tensor) { return unidle::capi::take_back(*tensor) ? 1 : 0; }

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
