#include "unidle/data/subset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "unidle/base/error.h"

namespace unidle::data {

Subset::Subset(const Source& source, std::vector<std::int64_t> items)
    : source_(source), items_(std::move(items)), run_(average_run()) {
  for (const std::int64_t item : items_) {
    if (item < 0 || item >= source_.items()) {
      throw Error(ErrorCode::kUsage, "subset",
                  fmt::format("expected items from 0 to {}, found {}", source_.items() - 1, item));
    }
  }
}

std::int64_t Subset::average_run() const {
  const std::int64_t whole = source_.run();
  if (whole == 0 || items_.empty()) {
    return 0;
  }
  std::int64_t runs = 0;
  std::int64_t last = -1;
  for (const std::int64_t item : items_) {
    const std::int64_t run = item / whole;
    if (run < last) {
      return 0;  // consecutive items of the subset are scattered in the source
    }
    runs += run > last ? 1 : 0;
    last = run;
  }
  return (items() + runs - 1) / runs;
}

void Subset::will_need(std::int64_t begin, std::int64_t end) const {
  // A run of the source includes the items between two of its selected items.
  const std::int64_t whole = source_.run();
  for (std::int64_t item = begin; item < end;) {
    std::int64_t first = original(item);
    std::int64_t last = first;
    const std::int64_t run = first / whole;
    for (; item < end && original(item) / whole == run; ++item) {
      first = std::min(first, original(item));
      last = std::max(last, original(item));
    }
    source_.will_need(first, last + 1);
  }
}

std::uint64_t Subset::read(const ItemRequest& request, std::span<const Places> samples) const {
  return source_.read({original(request.item), request.epoch, request.seed}, samples);
}

std::uint64_t Subset::gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const {
  // In pieces on the stack, to avoid an allocation per batch.
  std::array<ItemRequest, 64> piece;
  std::array<Rows, 64> places;
  if (fields.size() > places.size()) {
    return Source::gather(requests, fields);
  }
  std::uint64_t bytes = 0;
  for (std::size_t begin = 0; begin < requests.size(); begin += piece.size()) {
    const std::size_t count = std::min(piece.size(), requests.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      const ItemRequest& request = requests[begin + i];
      piece[i] = {original(request.item), request.epoch, request.seed};
    }
    for (std::size_t field = 0; field < fields.size(); ++field) {
      places[field] = {fields[field].at(begin).data(), fields[field].stride};
    }
    bytes += source_.gather({piece.data(), count}, {places.data(), fields.size()});
  }
  return bytes;
}

void Subset::expect(std::span<const ItemRequest> requests) const {
  for (const ItemRequest& request : requests) {
    const ItemRequest own{original(request.item), request.epoch, request.seed};
    source_.expect({&own, 1});
  }
}

std::int64_t Subset::extent(std::int64_t item, std::size_t field) const {
  return source_.extent(original(item), field);
}

}  // namespace unidle::data
