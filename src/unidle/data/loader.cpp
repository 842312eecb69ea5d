#include "unidle/data/loader.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/data/detail/slot_ring.h"
#include "unidle/data/detail/stages.h"

namespace unidle::data {

namespace {

constexpr std::size_t kPageBytes = 4096;

class HostAllocator final : public SlotAllocator {
 public:
  std::byte* allocate(std::size_t bytes) override {
    return static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), std::align_val_t{kPageBytes}));
  }
  void release(std::byte* memory, std::size_t) override { ::operator delete(memory, std::align_val_t{kPageBytes}); }
};

/// New threads leave signals to the threads of the program.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// Whether the fault lies in the item's data, so that another item may stand in for it.
bool is_damage(const Error& error) {
  return error.code() == ErrorCode::kInput || error.code() == ErrorCode::kIo || error.code() == ErrorCode::kCorrupt;
}

/// CPU time of a thread that runs; 0 where the system does not tell.
std::int64_t cpu_ns_of(pthread_t thread) {
  clockid_t clock{};
  timespec spent{};
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &spent) != 0) {
    return 0;
  }
  return std::int64_t{spent.tv_sec} * 1'000'000'000 + spent.tv_nsec;
}

}  // namespace

SlotAllocator& host_allocator() {
  static HostAllocator allocator;  // stateless
  return allocator;
}

struct Loader::Impl {
  Impl(const Source& the_source, const LoaderOptions& the_options);
  ~Impl() { stop(); }

  /// What a thread needs to make items; allocates nothing once made.
  struct Maker {
    Maker(const Impl& loader, int the_thread);
    int thread;
    detail::StageSums* stages;
    std::vector<Places> places;
    std::vector<std::byte> spare;  // for samples that nobody gets
    std::vector<ItemRequest> requests;
    std::vector<Rows> rows;
  };

  void stop();
  void start();
  void work(Maker& maker);
  /// Makes the items and counts them into their batches. Does not throw. The slots must be free.
  void make(detail::Plan::Range unit, Maker& maker);
  void read(std::int64_t position, Maker& maker, ItemTiming& timing);
  /// False when an item failed; then each is to be read by itself.
  bool gather(detail::Plan::Range unit, Maker& maker, ItemTiming& timing);
  /// Reads the item, or the first readable one after it; whether that was another one.
  bool read_or_replace(std::int64_t position, std::span<const Places> places, ItemTiming& timing) const;
  bool fits(const ItemRequest& request, const Places& places) const;
  void aim(std::int64_t position, Maker& maker);
  ItemRequest request_at(std::int64_t position) const;
  std::int64_t extent(std::int64_t batch_index, std::size_t field) const;
  void check_not_held(std::int64_t batch_index);
  void make_in_calling_thread(std::int64_t batch_index);
  void count(const detail::Slot& slot);

  const Source& source;
  const LoaderOptions options;
  const std::int64_t items;
  const detail::Plan plan;
  detail::SlotRing ring;
  mutable std::vector<detail::StageSums> stages;  // of the calling thread, and of each worker
  std::int64_t next_batch = 0;
  std::int64_t skipped = 0;
  LoaderWork delivered;
  Maker own_maker;                      // of the calling thread, without workers
  std::int64_t own_unit = 0;            // next one, without workers
  std::atomic<std::int64_t> next_unit;  // with workers
  std::vector<std::jthread> threads;
};

namespace {

std::int64_t slot_count(const LoaderOptions& options, const detail::Plan& plan) {
  // An item that straddles needs the slots of all its batches while the user still holds an earlier one.
  return std::max<std::int64_t>(2, std::int64_t{options.workers} * options.prefetch) + plan.straddle();
}

}  // namespace

Loader::Impl::Maker::Maker(const Impl& loader, int the_thread)
    : thread(the_thread),
      stages(&loader.stages[static_cast<std::size_t>(the_thread)]),
      requests(static_cast<std::size_t>(std::max<std::int64_t>(1, loader.source.grain()))) {
  const std::vector<Field>& fields = loader.ring.fields;
  rows.resize(fields.size());
  const auto samples = static_cast<std::size_t>(loader.plan.samples_per_item());
  places.assign(samples, Places(fields.size()));
  std::size_t bytes = 0;
  for (const Field& field : fields) {
    bytes += field.bytes();
  }
  if (samples > 1) {
    spare.resize(bytes * (samples - 1));
  }
}

Loader::Impl::Impl(const Source& the_source, const LoaderOptions& the_options)
    : source(the_source),
      options(the_options),
      items(options.order != nullptr ? options.order->items() : source.items()),
      plan(source, options),
      ring(plan, source.fields(), slot_count(options, plan),
           options.allocator != nullptr ? *options.allocator : host_allocator(),
           [this](std::int64_t batch_index, std::size_t field) { return extent(batch_index, field); }),
      stages(static_cast<std::size_t>(options.workers) + 1),
      own_maker(*this, 0),
      next_unit(0) {
  try {
    start();
  } catch (...) {
    stop();
    throw;
  }
}

void Loader::Impl::start() {
  const SignalsBlocked blocked;
  try {
    for (int thread = 1; thread <= options.workers; ++thread) {
      threads.emplace_back([this, maker = Maker(*this, thread)]() mutable { work(maker); });
    }
  } catch (const std::system_error& error) {
    throw Error(
        ErrorCode::kOutOfMemory, "loader option workers",
        fmt::format("thread {} of {} could not be started: {}", threads.size() + 1, options.workers, error.what()),
        "use fewer workers");
  }
}

void Loader::Impl::stop() {
  ring.close();
  threads.clear();  // joins
}

void Loader::Impl::work(Maker& maker) {
  pthread_setname_np(pthread_self(), fmt::format("unidle-load-{}", maker.thread).substr(0, 15).c_str());
  for (;;) {
    const detail::Plan::Range unit = plan.unit(next_unit.fetch_add(1, std::memory_order_relaxed));
    if (unit.begin == unit.end) {
      continue;
    }
    if (!ring.wait_free(plan.first_batch(unit.begin), plan.last_batch(unit.end - 1))) {
      return;
    }
    make(unit, maker);
  }
}

ItemRequest Loader::Impl::request_at(std::int64_t position) const {
  const auto [epoch, index] = plan.item_at(position);
  if (options.order != nullptr) {
    const Order::Place place = options.order->at(options.seed, epoch, index);
    return {place.item, epoch, place.seed};
  }
  return {options.shuffle ? shuffled_index(options.seed, epoch, index, items) : index, epoch, options.seed};
}

std::int64_t Loader::Impl::extent(std::int64_t batch_index, std::size_t field) const {
  std::int64_t longest = 0;
  for (std::int64_t position = plan.begin_position(batch_index); position < plan.end_position(batch_index);
       ++position) {
    longest = std::max(longest, source.extent(request_at(position).item, field));
  }
  return longest;
}

void Loader::Impl::aim(std::int64_t position, Maker& maker) {
  std::byte* spare = maker.spare.data();
  std::int64_t sample = position * plan.samples_per_item();
  for (Places& places : maker.places) {
    const std::int64_t batch_index = plan.batch_of(sample);
    const std::int64_t row = sample - plan.first_sample(batch_index);
    detail::Slot& slot = ring.slot(batch_index);
    const bool wanted = row >= 0 && row < plan.samples(batch_index);
    for (std::size_t field = 0; field < places.size(); ++field) {
      const std::size_t bytes = slot.sample_bytes[field];
      places[field] = {
          wanted ? slot.fields[field] + static_cast<std::size_t>(row) * bytes : std::exchange(spare, spare + bytes),
          bytes};
    }
    ++sample;
  }
}

bool Loader::Impl::fits(const ItemRequest& request, const Places& places) const {
  for (std::size_t field = 0; field < places.size(); ++field) {
    const Field& shape = ring.fields[field];
    if (shape.ragged &&
        static_cast<std::size_t>(source.extent(request.item, field)) * shape.row_bytes() > places[field].size()) {
      return false;
    }
  }
  return true;
}

bool Loader::Impl::read_or_replace(std::int64_t position, std::span<const Places> places, ItemTiming& timing) const {
  std::exception_ptr first;
  for (std::int64_t next = position; next < position + items; ++next) {
    const ItemRequest request = request_at(next);
    if (next != position && !fits(request, places.front())) {
      continue;  // longer than the batch that it would stand in
    }
    try {
      timing.item = request.item;
      timing.bytes += source.read(request, places);
      return next != position;
    } catch (const Error& error) {
      if (options.on_error == ErrorPolicy::kFail || !is_damage(error)) {
        throw;
      }
      first = first ? first : std::current_exception();
    }
  }
  std::rethrow_exception(first);  // none of them can be read
}

void Loader::Impl::read(std::int64_t position, Maker& maker, ItemTiming& timing) {
  detail::Slot& slot = ring.slot(plan.first_batch(position));
  try {
    aim(position, maker);
    if (read_or_replace(position, maker.places, timing)) {
      slot.skipped.fetch_add(1, std::memory_order_relaxed);
    }
  } catch (...) {
    ring.fail_item(slot, position, std::current_exception());
  }
}

bool Loader::Impl::gather(detail::Plan::Range unit, Maker& maker, ItemTiming& timing) {
  const std::int64_t batch_index = plan.first_batch(unit.begin);
  const detail::Slot& slot = ring.slot(batch_index);
  const auto row = static_cast<std::size_t>(unit.begin - plan.first_sample(batch_index));
  for (std::size_t field = 0; field < maker.rows.size(); ++field) {
    const std::size_t bytes = slot.sample_bytes[field];
    maker.rows[field] = {slot.fields[field] + row * bytes, bytes};
  }
  const auto count = static_cast<std::size_t>(unit.end - unit.begin);
  for (std::size_t i = 0; i < count; ++i) {
    maker.requests[i] = request_at(unit.begin + static_cast<std::int64_t>(i));
  }
  timing.item = maker.requests.front().item;
  try {
    timing.bytes = source.gather({maker.requests.data(), count}, maker.rows);
    return true;
  } catch (...) {
    return false;
  }
}

void Loader::Impl::make(detail::Plan::Range unit, Maker& maker) {
  const std::int64_t first = plan.first_batch(unit.begin);
  detail::Slot& slot = ring.slot(first);
  ItemTiming timing;
  timing.thread = maker.thread;
  timing.items = unit.end - unit.begin;
  const detail::StagesCounted counted(*maker.stages);
  timing.start_ns = system_clock().now_ns();
  if (source.grain() <= 1 || !gather(unit, maker, timing)) {
    for (std::int64_t position = unit.begin; position < unit.end; ++position) {
      read(position, maker, timing);
    }
  }
  timing.duration_ns = system_clock().now_ns() - timing.start_ns;
  slot.timings[static_cast<std::size_t>(plan.timing_place(first, unit.begin))] = timing;
  if (plan.samples_per_item() == 1) {
    ring.finish_items(slot, timing.items);
    return;
  }
  for (std::int64_t index = first; index <= plan.last_batch(unit.begin); ++index) {
    ring.finish_items(ring.slot(index), 1);
  }
}

void Loader::Impl::check_not_held(std::int64_t batch_index) {
  // Items of this batch may reach so far; a slot that the user holds would be waited for in vain.
  const std::int64_t last = plan.last_batch(plan.end_position(batch_index) - 1);
  for (std::int64_t index = batch_index; index <= last; ++index) {
    if (!ring.is_free_for(index)) {
      throw Error(ErrorCode::kUsage, "loader",
                  fmt::format("a batch taken {} batches ago is still held",
                              batch_index - index + static_cast<std::int64_t>(ring.slots.size())),
                  "let go of batches earlier, or raise prefetch");
    }
  }
}

void Loader::Impl::make_in_calling_thread(std::int64_t batch_index) {
  const std::int64_t before_ns = cpu_ns_of(pthread_self());
  const std::int64_t end = plan.end_position(batch_index);
  for (auto unit = plan.unit(own_unit); unit.begin < end; unit = plan.unit(++own_unit)) {
    if (unit.begin < unit.end) {
      make(unit, own_maker);
    }
  }
  delivered.cpu_ns += cpu_ns_of(pthread_self()) - before_ns;
}

void Loader::Impl::count(const detail::Slot& slot) {
  for (const ItemTiming& timing : std::span(slot.timings.data(), static_cast<std::size_t>(slot.timing_count))) {
    delivered.samples += timing.items * plan.samples_per_item();
    delivered.busy_ns += timing.duration_ns;
    delivered.slowest_ns = std::max(delivered.slowest_ns, timing.duration_ns / std::max<std::int64_t>(1, timing.items));
  }
}

Loader::Loader(const Source& source, const LoaderOptions& options) : impl_(std::make_unique<Impl>(source, options)) {}

Loader::~Loader() = default;

Batch Loader::next() {
  Impl& impl = *impl_;
  const std::int64_t index = impl.next_batch;
  impl.check_not_held(index);
  detail::Slot& slot = impl.ring.slot(index);
  if (impl.options.workers == 0) {
    impl.make_in_calling_thread(index);
  } else {
    impl.ring.wait_complete(slot);
  }
  if (slot.error) {
    std::rethrow_exception(slot.error);  // the batch stays due: every further call says the same
  }
  impl.skipped += slot.skipped.load(std::memory_order_relaxed);
  ++impl.next_batch;
  impl.count(slot);
  return Batch(&slot);
}

bool Loader::ready() const {
  // A slot that is still held counts as complete too, for an earlier batch.
  return impl_->ring.is_free_for(impl_->next_batch) &&
         impl_->ring.slot(impl_->next_batch).remaining.load(std::memory_order_acquire) == 0;
}

bool Loader::wait(std::chrono::nanoseconds limit) {
  // Without workers next() does the work; where a batch is held for too long, it is next() that says so.
  return impl_->options.workers == 0 || !impl_->ring.is_free_for(impl_->next_batch) ||
         impl_->ring.wait_complete(impl_->ring.slot(impl_->next_batch), limit);
}

std::int64_t Loader::samples_per_epoch() const { return impl_->items * impl_->plan.samples_per_item(); }
std::int64_t Loader::batches_per_epoch() const { return impl_->plan.batches_per_epoch(); }
std::int64_t Loader::batches_in_first_epoch() const { return impl_->plan.batches_in_first_epoch(); }
std::size_t Loader::field_bytes(std::size_t index) const { return impl_->ring.memory_bytes(index); }
std::int64_t Loader::skipped() const { return impl_->skipped; }

LoaderWork Loader::work() const {
  LoaderWork work = impl_->delivered;
  for (std::jthread& thread : impl_->threads) {
    work.cpu_ns += cpu_ns_of(thread.native_handle());
  }
  for (const detail::StageSums& sums : impl_->stages) {
    for (std::size_t stage = 0; stage < kStages; ++stage) {
      work.stage_ns[stage] += sums.ns(stage);
    }
  }
  return work;
}

Batch::Batch(detail::Slot* slot) : slot_(slot) {}
Batch::Batch(Batch&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
Batch& Batch::operator=(Batch&& other) noexcept {
  if (this != &other) {
    Batch gone(std::move(*this));
    slot_ = std::exchange(other.slot_, nullptr);
  }
  return *this;
}
Batch::~Batch() {
  if (slot_ != nullptr) {
    slot_->ring->give_back(*slot_);
  }
}

std::int64_t Batch::samples() const { return slot_->samples; }
std::int64_t Batch::epoch() const {
  return slot_->ring->plan.epoch_of_batch(slot_->batch_index.load(std::memory_order_relaxed));
}
std::int64_t Batch::epoch_offset() const {
  return slot_->ring->plan.epoch_offset(slot_->batch_index.load(std::memory_order_relaxed));
}
std::int64_t Batch::first_sample() const { return epoch() * slot_->ring->plan.samples_of_source() + epoch_offset(); }
std::byte* Batch::field(std::size_t index) const { return slot_->fields.at(index); }
std::int64_t Batch::extent(std::size_t index) const {
  const Field& field = slot_->ring->fields.at(index);
  return static_cast<std::int64_t>(slot_->sample_bytes.at(index) / field.row_bytes());
}
std::byte* Batch::take(std::size_t index) {
  std::byte* fresh = slot_->ring->allocator.allocate(slot_->ring->memory_bytes(index));
  return std::exchange(slot_->fields.at(index), fresh);
}
std::span<const ItemTiming> Batch::timings() const {
  return {slot_->timings.data(), static_cast<std::size_t>(slot_->timing_count)};
}

}  // namespace unidle::data
