#include "unidle/data/loader.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <limits>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/data/detail/slot_ring.h"

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

[[noreturn]] void bad_option(std::string_view name, std::string_view expected, std::int64_t found) {
  throw Error(ErrorCode::kUsage, fmt::format("loader option {}", name), fmt::format("{}, found {}", expected, found));
}

void check(const Source& source, const LoaderOptions& options) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (options.batch < 1 || options.batch > kMost) {
    bad_option("batch", fmt::format("expected 1 to {}", kMost), options.batch);
  }
  if (options.workers < 0 || options.workers > 4096) {
    bad_option("workers", "expected 0 to 4096", options.workers);
  }
  if (options.prefetch < 1 || options.prefetch > 4096) {
    bad_option("prefetch", "expected 1 to 4096", options.prefetch);
  }
  if (options.start_sample < 0) {
    bad_option("start_sample", "expected 0 or more", options.start_sample);
  }
  if (source.items() < 1) {
    throw Error(ErrorCode::kInput, "source", "has no items");
  }
  if (source.samples_per_item() < 1 || source.samples_per_item() > kMost) {
    throw Error(ErrorCode::kUsage, "source",
                fmt::format("samples per item: expected 1 to {}, found {}", kMost, source.samples_per_item()));
  }
}

}  // namespace

SlotAllocator& host_allocator() {
  static HostAllocator allocator;  // stateless
  return allocator;
}

struct Loader::Impl {
  Impl(const Source& the_source, const LoaderOptions& the_options);
  ~Impl() { stop(); }

  void stop();
  void start();
  void work(int thread, std::vector<Places>& places);
  /// Makes the item and counts it into its batches. Does not throw. The slots must be free.
  void make(std::int64_t position, int thread, std::vector<Places>& places);
  void read(std::int64_t position, int thread, std::vector<Places>& places);
  /// Reads the item, or the first readable one after it; whether that was another one.
  bool read_or_replace(std::int64_t position, std::span<const Places> places, ItemTiming& timing) const;
  void read_exactly(std::int64_t position, std::span<const Places> places, ItemTiming& timing) const;
  void aim(std::int64_t position, std::vector<Places>& places);
  std::vector<Places> empty_places() const;
  void check_not_held(std::int64_t batch_index);

  const Source& source;
  const LoaderOptions options;
  const std::int64_t items;
  const detail::Plan plan;
  detail::SlotRing ring;
  std::vector<std::byte> discarded;  // samples of the first item that were delivered before the resume
  std::vector<Places> own_places;    // of the calling thread, without workers
  std::int64_t next_batch = 0;
  std::int64_t skipped = 0;
  std::int64_t own_position;                // next item, without workers
  std::atomic<std::int64_t> next_position;  // next item, with workers
  std::vector<std::jthread> threads;
};

namespace {

std::int64_t slot_count(const LoaderOptions& options, const detail::Plan& plan) {
  // An item that straddles needs the slots of all its batches while the user still holds an earlier one.
  return std::max<std::int64_t>(2, std::int64_t{options.workers} * options.prefetch) + plan.straddle();
}

}  // namespace

Loader::Impl::Impl(const Source& the_source, const LoaderOptions& the_options)
    : source(the_source),
      options(the_options),
      items(source.items()),
      plan{options.start_sample, options.batch, source.samples_per_item()},
      ring(plan, source.fields(), slot_count(options, plan),
           options.allocator != nullptr ? *options.allocator : host_allocator()),
      own_position(plan.first_position()),
      next_position(plan.first_position()) {
  const auto lost = static_cast<std::size_t>(plan.start_sample % plan.samples_per_item);
  std::size_t bytes = 0;
  for (const std::size_t field : ring.sample_bytes) {
    bytes += field;
  }
  discarded.resize(bytes * lost);
  own_places = empty_places();
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
      threads.emplace_back([this, thread, places = empty_places()]() mutable { work(thread, places); });
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

std::vector<Places> Loader::Impl::empty_places() const {
  return std::vector<Places>(static_cast<std::size_t>(plan.samples_per_item), Places(ring.sample_bytes.size()));
}

void Loader::Impl::work(int thread, std::vector<Places>& places) {
  pthread_setname_np(pthread_self(), fmt::format("unidle-load-{}", thread).substr(0, 15).c_str());
  for (;;) {
    const std::int64_t position = next_position.fetch_add(1, std::memory_order_relaxed);
    if (!ring.wait_free(plan.first_batch(position), plan.last_batch(position))) {
      return;
    }
    make(position, thread, places);
  }
}

void Loader::Impl::aim(std::int64_t position, std::vector<Places>& places) {
  std::byte* spare = discarded.data();
  std::int64_t offset = position * plan.samples_per_item - plan.start_sample;
  for (Places& sample : places) {
    detail::Slot* slot = offset < 0 ? nullptr : &ring.slot(offset / plan.batch);
    const auto row = static_cast<std::size_t>(offset < 0 ? 0 : offset % plan.batch);
    for (std::size_t field = 0; field < sample.size(); ++field) {
      const std::size_t bytes = ring.sample_bytes[field];
      sample[field] = {slot != nullptr ? slot->fields[field] + row * bytes : std::exchange(spare, spare + bytes),
                       bytes};
    }
    ++offset;
  }
}

void Loader::Impl::read_exactly(std::int64_t position, std::span<const Places> places, ItemTiming& timing) const {
  const std::int64_t epoch = position / items;
  const std::int64_t index = position % items;
  timing.item = options.shuffle ? shuffled_index(options.seed, epoch, index, items) : index;
  timing.bytes = source.read({timing.item, epoch, options.seed}, places);
}

bool Loader::Impl::read_or_replace(std::int64_t position, std::span<const Places> places, ItemTiming& timing) const {
  std::exception_ptr first;
  for (std::int64_t next = position; next < position + items; ++next) {
    try {
      read_exactly(next, places, timing);
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

void Loader::Impl::read(std::int64_t position, int thread, std::vector<Places>& places) {
  const std::int64_t first = plan.first_batch(position);
  detail::Slot& slot = ring.slot(first);
  ItemTiming timing;
  timing.thread = thread;
  timing.start_ns = system_clock().now_ns();
  try {
    aim(position, places);
    if (read_or_replace(position, places, timing)) {
      slot.skipped.fetch_add(1, std::memory_order_relaxed);
    }
  } catch (...) {
    ring.fail_item(slot, position, std::current_exception());
  }
  timing.duration_ns = system_clock().now_ns() - timing.start_ns;
  slot.timings[static_cast<std::size_t>(position - plan.begin_timing(first))] = timing;
}

void Loader::Impl::make(std::int64_t position, int thread, std::vector<Places>& places) {
  read(position, thread, places);
  for (std::int64_t index = plan.first_batch(position); index <= plan.last_batch(position); ++index) {
    ring.finish_item(ring.slot(index));
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

Loader::Loader(const Source& source, const LoaderOptions& options) {
  check(source, options);
  impl_ = std::make_unique<Impl>(source, options);
}

Loader::~Loader() = default;

Batch Loader::next() {
  Impl& impl = *impl_;
  const std::int64_t index = impl.next_batch;
  impl.check_not_held(index);
  detail::Slot& slot = impl.ring.slot(index);
  if (impl.options.workers == 0) {
    for (const std::int64_t end = impl.plan.end_position(index); impl.own_position < end; ++impl.own_position) {
      impl.make(impl.own_position, 0, impl.own_places);
    }
  } else {
    impl.ring.wait_complete(slot);
  }
  if (slot.error) {
    std::rethrow_exception(slot.error);  // the batch stays due: every further call says the same
  }
  impl.skipped += slot.skipped.load(std::memory_order_relaxed);
  ++impl.next_batch;
  return Batch(&slot);
}

bool Loader::ready() const {
  // A slot that is still held counts as complete too, for an earlier batch.
  return impl_->ring.is_free_for(impl_->next_batch) &&
         impl_->ring.slot(impl_->next_batch).remaining.load(std::memory_order_acquire) == 0;
}

std::int64_t Loader::samples_per_epoch() const { return impl_->items * impl_->plan.samples_per_item; }
std::int64_t Loader::skipped() const { return impl_->skipped; }

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

std::int64_t Batch::samples() const { return slot_->ring->plan.batch; }
std::int64_t Batch::first_sample() const {
  return slot_->ring->plan.first_sample(slot_->batch_index.load(std::memory_order_relaxed));
}
std::byte* Batch::field(std::size_t index) const { return slot_->fields.at(index); }
std::span<const ItemTiming> Batch::timings() const {
  return {slot_->timings.data(), static_cast<std::size_t>(slot_->timing_count)};
}

}  // namespace unidle::data
