#include "unidle/data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/data/detail/item_maker.h"
#include "unidle/data/detail/pacing.h"
#include "unidle/data/detail/slot_budget.h"
#include "unidle/data/detail/slot_ring.h"
#include "unidle/data/detail/stages.h"
#include "unidle/data/detail/stream.h"
#include "unidle/data/detail/worker_threads.h"
#include "unidle/telemetry/host.h"

namespace unidle::data {

namespace {

int threads_of(const LoaderOptions& options) {
  return options.workers != kAutoWorkers ? options.workers : telemetry::usable_cpus();
}

}  // namespace

struct Loader::Impl {
  Impl(const Source& the_source, const LoaderOptions& the_options);
  ~Impl() { stop(); }

  void stop();
  void work(int thread);
  void check_not_held(std::int64_t batch_index);
  void make_in_calling_thread(std::int64_t batch_index);
  /// Waits at most `limit`, if given; returns whether the batch is complete.
  bool wait_for(std::int64_t batch_index, std::optional<std::chrono::nanoseconds> limit);
  void count(const detail::Slot& slot);
  Batch hand_over(detail::Slot& slot);

  const LoaderOptions options;
  const detail::Plan plan;
  const detail::Stream stream;
  const std::int64_t look_ahead;  // units
  const int workers;
  detail::SlotRing ring;
  mutable std::vector<detail::StageSums> stages;  // of the calling thread and of each worker
  std::vector<detail::WaitSum> waits;             // of each worker
  std::int64_t next_batch = 0;
  std::int64_t skipped = 0;
  LoaderWork delivered;
  std::deque<detail::ItemMaker> makers;    // of the calling thread and of each worker
  std::int64_t own_unit = 0;               // next unit, without workers
  std::atomic<std::int64_t> next_unit{0};  // next unit, with workers
  detail::WorkerThreads threads;
  std::optional<detail::Pacing> pacing;  // with kAutoWorkers
};

Loader::Impl::Impl(const Source& the_source, const LoaderOptions& the_options)
    : options(the_options),
      plan(the_source, options),
      stream{the_source, options, plan},
      look_ahead(the_source.look_ahead() / std::max<std::int64_t>(1, the_source.grain())),
      workers(threads_of(options)),
      ring(plan, the_source.fields(), detail::slot_count(the_source, options, plan, workers),
           options.allocator != nullptr ? *options.allocator : host_allocator(),
           [this](std::int64_t batch_index, std::size_t field) { return stream.extent(batch_index, field); }),
      stages(static_cast<std::size_t>(workers) + 1),
      waits(static_cast<std::size_t>(workers)) {
  for (int thread = 0; thread <= workers; ++thread) {
    makers.emplace_back(stream, ring, thread, stages[static_cast<std::size_t>(thread)]);
  }
  if (options.workers == kAutoWorkers) {
    pacing.emplace(detail::least_slots(plan), threads, ring, waits);
  }
  for (std::int64_t unit = 0; unit < look_ahead; ++unit) {
    stream.expect(unit);
  }
  try {
    threads.start(workers, [this](int thread) { work(thread); });
  } catch (...) {
    stop();
    throw;
  }
}

void Loader::Impl::stop() {
  ring.close();
  threads.stop();
}

void Loader::Impl::work(int thread) {
  detail::ItemMaker& maker = makers[static_cast<std::size_t>(thread)];
  detail::WaitSum& wait = waits[static_cast<std::size_t>(thread) - 1];
  while (threads.stays(thread)) {
    const std::int64_t number = next_unit.fetch_add(1, std::memory_order_relaxed);
    const detail::Plan::Range unit = plan.unit(number);
    if (look_ahead > 0) {
      stream.expect(number + look_ahead);
    }
    if (unit.begin == unit.end) {
      continue;
    }
    if (!ring.wait_open(plan.last_batch(unit.end - 1), wait)) {
      return;
    }
    maker.make(unit);
  }
}

void Loader::Impl::check_not_held(std::int64_t batch_index) {
  // Items of this batch may reach this far; waiting for a slot that the user holds would never end.
  const std::int64_t last = plan.last_batch(plan.end_position(batch_index) - 1);
  if (!ring.is_open(last)) {
    throw Error(ErrorCode::kUsage, "loader",
                fmt::format("{} batches are still held, and there is no room for the next one", ring.held()),
                "release batches earlier, or raise prefetch or max_bytes");
  }
}

void Loader::Impl::make_in_calling_thread(std::int64_t batch_index) {
  const std::int64_t before_ns = detail::own_cpu_ns();
  const std::int64_t end = plan.end_position(batch_index);
  for (auto unit = plan.unit(own_unit); unit.begin < end; unit = plan.unit(++own_unit)) {
    if (look_ahead > 0) {
      stream.expect(own_unit + look_ahead);
    }
    if (unit.begin < unit.end) {
      makers.front().make(unit);
    }
  }
  delivered.cpu_ns += detail::own_cpu_ns() - before_ns;
}

bool Loader::Impl::wait_for(std::int64_t batch_index, std::optional<std::chrono::nanoseconds> limit) {
  if (pacing) {
    pacing->asked(batch_index);
  }
  if (ring.is_complete(batch_index)) {
    return true;
  }
  const std::int64_t start_ns = system_clock().now_ns();
  const bool complete = ring.wait_complete(batch_index, limit);
  if (pacing) {
    pacing->waited(system_clock().now_ns() - start_ns);
  }
  return complete;
}

void Loader::Impl::count(const detail::Slot& slot) {
  for (const ItemTiming& timing : std::span(slot.timings.data(), static_cast<std::size_t>(slot.timing_count))) {
    delivered.samples += timing.items * plan.samples_per_item();
    delivered.busy_ns += timing.duration_ns;
    delivered.slowest_ns = std::max(delivered.slowest_ns, timing.duration_ns / std::max<std::int64_t>(1, timing.items));
  }
}

Batch Loader::Impl::hand_over(detail::Slot& slot) {
  ++next_batch;
  count(slot);
  ring.deliver();
  if (pacing) {
    pacing->taken(slot.samples);
  }
  return Batch(&slot);
}

Loader::Loader(const Source& source, const LoaderOptions& options) : impl_(std::make_unique<Impl>(source, options)) {}

Loader::~Loader() = default;

Batch Loader::next() {
  Impl& impl = *impl_;
  const std::int64_t index = impl.next_batch;
  impl.check_not_held(index);
  detail::Slot& slot = impl.ring.slot(index);
  if (impl.workers == 0) {
    impl.make_in_calling_thread(index);
  }
  impl.wait_for(index, std::nullopt);
  if (slot.failed.error) {
    std::rethrow_exception(slot.failed.error);  // the next call rethrows, until pass_over()
  }
  impl.skipped += slot.skipped.load(std::memory_order_relaxed);
  return impl.hand_over(slot);
}

std::optional<Batch> Loader::pass_over() {
  detail::Slot& slot = impl_->ring.slot(impl_->next_batch);
  if (!impl_->ring.is_complete(impl_->next_batch) || !slot.failed.error) {
    return std::nullopt;
  }
  return impl_->hand_over(slot);
}

bool Loader::ready() const { return impl_->ring.is_complete(impl_->next_batch); }

bool Loader::wait(std::chrono::nanoseconds limit) {
  // Without workers next() does the work. When the user holds too many batches, next() throws.
  return impl_->workers == 0 || !impl_->ring.is_open(impl_->next_batch) || impl_->wait_for(impl_->next_batch, limit);
}

std::int64_t Loader::samples_per_epoch() const { return impl_->plan.samples_of_source(); }
std::int64_t Loader::batches_per_epoch() const { return impl_->plan.batches_per_epoch(); }
std::int64_t Loader::batches_in_first_epoch() const { return impl_->plan.batches_in_first_epoch(); }
std::size_t Loader::field_bytes(std::size_t index) const { return impl_->ring.memory_bytes(index); }
std::int64_t Loader::skipped() const { return impl_->skipped; }
int Loader::workers() const { return impl_->workers; }
int Loader::active_workers() const { return impl_->threads.wanted(); }
std::int64_t Loader::depth() const { return impl_->ring.depth(); }

LoaderWork Loader::work() const {
  LoaderWork work = impl_->delivered;
  work.cpu_ns += impl_->threads.cpu_ns();
  for (const detail::StageSums& sums : impl_->stages) {
    for (std::size_t stage = 0; stage < kStages; ++stage) {
      work.stage_ns[stage] += sums.ns(stage);
    }
  }
  return work;
}

}  // namespace unidle::data
