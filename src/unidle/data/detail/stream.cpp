#include "unidle/data/detail/stream.h"

#include <algorithm>
#include <array>

namespace unidle::data::detail {

ItemRequest Stream::request_of(const Plan::Item& item) const {
  const auto [epoch, index] = item;
  if (options.order != nullptr) {
    const Order::Place place = options.order->at(options.seed, epoch, index);
    return {place.item, epoch, place.seed};
  }
  return {options.shuffle ? shuffled_index(options.seed, epoch, index, source.items()) : index, epoch, options.seed};
}

void Stream::requests_of(Plan::Range unit, std::span<ItemRequest> requests) const {
  constexpr std::size_t kMost = 256;
  std::array<std::int64_t, kMost> indices;
  for (std::size_t done = 0; done < requests.size();) {
    const auto [epoch, count] = plan.items_at(unit.begin + static_cast<std::int64_t>(done),
                                              std::span(indices).first(std::min(kMost, requests.size() - done)));
    if (options.order == nullptr && options.shuffle) {
      shuffle_indices(options.seed, epoch, source.items(), std::span(indices).first(count));
    }
    for (std::size_t i = 0; i < count; ++i) {
      requests[done + i] =
          options.order == nullptr ? ItemRequest{indices[i], epoch, options.seed} : request_of({epoch, indices[i]});
    }
    done += count;
  }
}

std::int64_t Stream::extent(std::int64_t batch_index, std::size_t field) const {
  std::int64_t longest = 0;
  for (std::int64_t position = plan.begin_position(batch_index); position < plan.end_position(batch_index);
       ++position) {
    longest = std::max(longest, source.extent(request_at(position).item, field));
  }
  return longest;
}

void Stream::read_ahead(std::int64_t position) const {
  const Order& order = *options.order;
  const std::int64_t runs = (order.items() + order.run() - 1) / order.run();
  const Plan::Item now = plan.item_at(position);
  const std::int64_t last = now.index / order.run() + order.window();
  std::int64_t first = now.index / order.run();  // at the start of a stream, announce the whole window
  if (position > 0) {
    const Plan::Item before = plan.item_at(position - 1);
    const std::int64_t run_before = before.index / order.run() - (before.epoch == now.epoch ? 0 : runs);
    first = std::max(first, run_before + order.window() + 1);
  }
  for (std::int64_t number = first; number <= last && number < 2 * runs; ++number) {
    const Order::Run run = order.run_at(options.seed, now.epoch + number / runs, number % runs);
    source.will_need(run.begin, run.end);
  }
}

void Stream::expect(std::int64_t unit_number) const {
  const Plan::Range unit = plan.unit(unit_number);
  for (std::int64_t position = unit.begin; position < unit.end; ++position) {
    const ItemRequest request = request_at(position);
    source.expect({&request, 1});
  }
}

}  // namespace unidle::data::detail
