#include "unidle/data/detail/item_maker.h"

#include <algorithm>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"

namespace unidle::data::detail {

namespace {

/// True when the item's data is at fault, so that the batch may do without it.
bool is_damage(const Error& error) {
  return error.code() == ErrorCode::kInput || error.code() == ErrorCode::kIo || error.code() == ErrorCode::kCorrupt;
}

}  // namespace

ItemMaker::ItemMaker(const Stream& stream, SlotRing& ring, int thread, StageSums& stages)
    : stream_(stream),
      ring_(ring),
      thread_(thread),
      stages_(&stages),
      requests_(static_cast<std::size_t>(std::max<std::int64_t>(1, stream.source.grain()))),
      rows_(ring.fields.size()) {
  const auto samples = static_cast<std::size_t>(stream.plan.samples_per_item());
  places_.assign(samples, Places(ring.fields.size()));
  std::size_t bytes = 0;
  for (const Field& field : ring.fields) {
    bytes += field.bytes();
    ragged_ = ragged_ || field.ragged;
  }
  spare_.resize(bytes * (samples - 1));
}

template <typename Use>
void ItemMaker::each_row(std::int64_t position, const Use& use) const {
  const Plan& plan = stream_.plan;
  const std::int64_t first = position * plan.samples_per_item();
  for (std::int64_t sample = first; sample < first + plan.samples_per_item(); ++sample) {
    const std::int64_t batch_index = plan.batch_of(sample);
    const std::int64_t row = sample - plan.first_sample(batch_index);
    use(batch_index, row >= 0 && row < plan.samples(batch_index) ? row : -1);
  }
}

void ItemMaker::aim(std::int64_t position) {
  std::byte* spare = spare_.data();
  std::size_t sample = 0;
  each_row(position, [&](std::int64_t batch_index, std::int64_t row) {
    const Slot& slot = ring_.slot(batch_index);
    Places& places = places_[sample++];
    for (std::size_t field = 0; field < places.size(); ++field) {
      const std::size_t bytes = slot.sample_bytes[field];
      places[field] = {
          row >= 0 ? slot.fields[field] + static_cast<std::size_t>(row) * bytes : std::exchange(spare, spare + bytes),
          bytes};
    }
  });
}

bool ItemMaker::fits(const ItemRequest& request) const {
  const Places& places = places_.front();
  for (std::size_t field = 0; ragged_ && field < places.size(); ++field) {
    const Field& shape = ring_.fields[field];
    if (shape.ragged && static_cast<std::size_t>(stream_.source.extent(request.item, field)) * shape.row_bytes() >
                            places[field].size()) {
      return false;
    }
  }
  return true;
}

ItemMaker::Made ItemMaker::read_or_replace(std::int64_t position, bool replace, ItemTiming& timing) const {
  const Plan& plan = stream_.plan;
  std::exception_ptr first;
  const auto can_be_read = [&](const ItemRequest& request) {
    try {
      timing.item = request.item;
      timing.bytes += stream_.source.read(request, places_);
      return true;
    } catch (const Error& error) {
      if (!replace || !is_damage(error)) {
        throw;
      }
      first = first ? first : std::current_exception();
      return false;
    }
  };
  const ItemRequest due = stream_.request_at(position);
  if (can_be_read(due)) {
    return {due, false};
  }
  const auto stands_in = [&](const ItemRequest& request) { return fits(request) && can_be_read(request); };
  const std::int64_t end = position + 2 * plan.share();  // covers one whole epoch, since two orders differ
  for (std::int64_t next = position + 1; next < end; ++next) {
    if (const ItemRequest request = stream_.request_at(next); stands_in(request)) {
      return {request, true};
    }
  }
  // Items of other ranks, so that no rank ends earlier: unshuffled, a share is the same in every epoch.
  const Plan::Item own = plan.item_at(position);
  for (std::int64_t ahead = 1; ahead < plan.items(); ++ahead) {
    const ItemRequest request = stream_.request_of({own.epoch, (own.index + ahead) % plan.items()});
    if (stands_in(request)) {
      return {request, true};
    }
  }
  std::rethrow_exception(first);  // no item can be read
}

void ItemMaker::tell_extents(const ItemRequest& request, std::int64_t position) {
  for (std::size_t field = 0; ragged_ && field < ring_.fields.size(); ++field) {
    if (!ring_.fields[field].ragged) {
      continue;
    }
    const std::int64_t extent = stream_.source.extent(request.item, field);
    each_row(position, [&](std::int64_t batch_index, std::int64_t row) {
      if (row >= 0) {
        ring_.slot(batch_index).extents[field][static_cast<std::size_t>(row)] = extent;
      }
    });
  }
}

void ItemMaker::leave_out(std::int64_t position) {
  each_row(position, [&](std::int64_t batch_index, std::int64_t row) {
    if (row >= 0) {
      ring_.leave_out(ring_.slot(batch_index), row, position, std::current_exception());
    }
  });
}

void ItemMaker::stand_in(std::int64_t batch_index) {
  Slot& slot = ring_.slot(batch_index);
  std::byte* spare = spare_.data();
  for (Places& places : places_) {
    for (std::size_t field = 0; field < places.size(); ++field) {
      const std::size_t bytes = slot.sample_bytes[field];
      places[field] = {&places == &places_.front() ? slot.fields[field] : std::exchange(spare, spare + bytes), bytes};
    }
  }
  slot.left_out.front() = 0;
  try {
    ItemTiming timing;
    const Made made = read_or_replace(stream_.plan.begin_position(batch_index), true, timing);
    for (std::size_t field = 0; ragged_ && field < ring_.fields.size(); ++field) {
      if (ring_.fields[field].ragged) {
        slot.extents[field].front() = stream_.source.extent(made.request.item, field);
      }
    }
  } catch (...) {
    slot.left_out.front() = 1;  // the batch then fails with the error of its own samples
  }
}

void ItemMaker::finish(std::int64_t batch_index, std::int64_t items) {
  Slot& slot = ring_.slot(batch_index);
  if (SlotRing::count_items(slot, items)) {
    if (slot.left_out_count.load(std::memory_order_relaxed) == slot.samples && !slot.failed.error) {
      stand_in(batch_index);
    }
    ring_.complete(slot);
  }
}

void ItemMaker::fail(std::int64_t position) {
  for (std::int64_t index = stream_.plan.first_batch(position); index <= stream_.plan.last_batch(position); ++index) {
    ring_.fail_item(ring_.slot(index), position, std::current_exception());
  }
}

void ItemMaker::read(std::int64_t position, ItemTiming& timing) {
  std::atomic<std::int64_t>& skipped = ring_.slot(stream_.plan.first_batch(position)).skipped;
  try {
    aim(position);
    const Made made = read_or_replace(position, stream_.options.on_error == ErrorPolicy::kReplace, timing);
    tell_extents(made.request, position);
    skipped.fetch_add(made.replaces ? 1 : 0, std::memory_order_relaxed);
  } catch (const Error& error) {
    if (stream_.options.on_error != ErrorPolicy::kSkip || !is_damage(error)) {
      fail(position);
      return;
    }
    leave_out(position);
    skipped.fetch_add(1, std::memory_order_relaxed);
  } catch (...) {
    fail(position);
  }
}

bool ItemMaker::gather(Plan::Range unit, ItemTiming& timing) {
  const std::int64_t batch_index = stream_.plan.first_batch(unit.begin);
  const Slot& slot = ring_.slot(batch_index);
  const auto row = static_cast<std::size_t>(unit.begin - stream_.plan.first_sample(batch_index));
  for (std::size_t field = 0; field < rows_.size(); ++field) {
    const std::size_t bytes = slot.sample_bytes[field];
    rows_[field] = {slot.fields[field] + row * bytes, bytes};
  }
  const auto count = static_cast<std::size_t>(unit.end - unit.begin);
  stream_.requests_of(unit, std::span(requests_).first(count));
  timing.item = requests_.front().item;
  try {
    timing.bytes = stream_.source.gather({requests_.data(), count}, rows_);
    for (std::size_t i = 0; ragged_ && i < count; ++i) {
      tell_extents(requests_[i], unit.begin + static_cast<std::int64_t>(i));
    }
    return true;
  } catch (...) {
    return false;
  }
}

void ItemMaker::make(Plan::Range unit) {
  const Plan& plan = stream_.plan;
  const std::int64_t first = plan.first_batch(unit.begin);
  Slot& slot = ring_.slot(first);
  ItemTiming timing;
  timing.thread = thread_;
  timing.items = unit.end - unit.begin;
  const StagesCounted counted(*stages_);
  timing.start_ns = system_clock().now_ns();
  for (std::int64_t position = unit.begin; stream_.reads_ahead() && position < unit.end; ++position) {
    stream_.read_ahead(position);
  }
  if (stream_.source.grain() <= 1 || !gather(unit, timing)) {
    for (std::int64_t position = unit.begin; position < unit.end; ++position) {
      read(position, timing);
    }
  }
  timing.duration_ns = system_clock().now_ns() - timing.start_ns;
  slot.timings[static_cast<std::size_t>(plan.timing_place(first, unit.begin))] = timing;
  if (plan.samples_per_item() == 1) {
    finish(first, timing.items);
    return;
  }
  for (std::int64_t index = first; index <= plan.last_batch(unit.begin); ++index) {
    finish(index, 1);
  }
}

}  // namespace unidle::data::detail
