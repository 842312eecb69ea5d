#include "unidle/data/sources/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "unidle/base/error.h"
#include "unidle/data/sources/arrays.h"

namespace unidle::data {

namespace {

void check_at_least(std::string_view name, std::int64_t value, std::int64_t least) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (value < least || value > kMost) {
    throw Error(ErrorCode::kUsage, fmt::format("windows option {}", name),
                fmt::format("expected {} to {}, found {}", least, kMost, value));
  }
}

}  // namespace

WindowSource::WindowSource(std::span<const ArrayView> series, const WindowOptions& options) : options_(options) {
  check_at_least("length", options_.length, 1);
  check_at_least("horizon", options_.horizon, 0);
  check_at_least("stride", options_.stride, 1);
  if (series.empty()) {
    throw Error(ErrorCode::kUsage, "windows", "expected at least one series");
  }
  for (std::size_t number = 0; number < series.size(); ++number) {
    add_series(number, series[number]);
  }
  for (const std::int64_t column : options_.targets) {
    if (column < 0 || column >= columns_) {
      throw Error(ErrorCode::kUsage, "windows option targets",
                  fmt::format("expected columns from 0 to {}, found {}", columns_ - 1, column));
    }
  }
  if (stretches_.empty()) {
    throw Error(
        ErrorCode::kInput, "windows",
        fmt::format("no stretch without gaps has the {} + {} steps of a window", options_.length, options_.horizon));
  }
  const auto told = options_.targets.empty() ? columns_ : static_cast<std::int64_t>(options_.targets.size());
  fields_ = {{"input", DType::kF32, {options_.length, columns_}}, {"target", DType::kF32, {options_.horizon, told}}};
  grain_ = rows_at_once(fields_[0].bytes() + fields_[1].bytes());
}

void WindowSource::add_series(std::size_t number, const ArrayView& array) {
  const auto fail = [number](std::string message) {
    throw Error(ErrorCode::kUsage, fmt::format("series {}", number), std::move(message));
  };
  if (array.dtype != DType::kF32 || array.shape.empty() || array.shape.size() > 2 || !array.contiguous()) {
    fail(fmt::format("expected float32 {{steps, columns}} in one piece, found {} with {} axes", name_of(array.dtype),
                     array.shape.size()));
  }
  const std::int64_t columns = array.shape.size() == 2 ? array.shape[1] : 1;
  if (number == 0) {
    columns_ = columns;
  }
  if (columns != columns_ || columns < 1) {
    fail(fmt::format("has {} columns; expected {}", columns, std::max<std::int64_t>(1, columns_)));
  }
  const auto* values = reinterpret_cast<const float*>(array.data);
  series_.push_back(values);
  const std::int64_t steps = array.shape[0];
  std::int64_t begin = 0;
  for (std::int64_t step = 0; options_.skip_gaps && step < steps; ++step) {
    const float* row = values + step * columns_;
    if (std::any_of(row, row + columns_, [](float value) { return std::isnan(value); })) {
      add_stretch(number, begin, step);
      begin = step + 1;
    }
  }
  add_stretch(number, begin, steps);
}

void WindowSource::add_stretch(std::size_t series, std::int64_t begin, std::int64_t end) {
  const std::int64_t room = end - begin - options_.length - options_.horizon;
  if (room >= 0) {
    const std::int64_t before = stretches_.empty() ? 0 : stretches_.back().end;
    stretches_.push_back({before + room / options_.stride + 1, series, begin});
  }
}

WindowSource::Place WindowSource::place(std::int64_t item) const {
  const auto stretch = std::upper_bound(stretches_.begin(), stretches_.end(), item,
                                        [](std::int64_t wanted, const Stretch& one) { return wanted < one.end; });
  const std::int64_t before = stretch == stretches_.begin() ? 0 : std::prev(stretch)->end;
  return {stretch->series, stretch->first_step + (item - before) * options_.stride};
}

void WindowSource::copy(std::int64_t item, std::byte* input, std::byte* target) const {
  const auto [series, step] = place(item);
  const float* from = series_[series] + step * columns_;
  std::memcpy(input, from, fields_[0].bytes());
  if (options_.horizon == 0) {
    return;  // there is no destination for targets
  }
  from += options_.length * columns_;
  if (options_.targets.empty()) {
    std::memcpy(target, from, fields_[1].bytes());
    return;
  }
  for (std::int64_t ahead = 0; ahead < options_.horizon; ++ahead, from += columns_) {
    for (const std::int64_t column : options_.targets) {
      std::memcpy(target, from + column, sizeof(float));
      target += sizeof(float);
    }
  }
}

std::uint64_t WindowSource::read(const ItemRequest& request, std::span<const Places> samples) const {
  copy(request.item, samples[0][0].data(), samples[0][1].data());
  return 0;
}

std::uint64_t WindowSource::gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    copy(requests[i].item, fields[0].at(i).data(), fields[1].at(i).data());
  }
  return 0;
}

namespace sources {

namespace {

std::unique_ptr<Source> open_windows(SourceOptions& options, std::span<const ArrayView> arrays) {
  WindowOptions wanted;
  wanted.length = options.integer("length", 0);
  wanted.horizon = options.integer("horizon", wanted.horizon);
  wanted.stride = options.integer("stride", wanted.stride);
  wanted.targets = options.integers("targets", {});
  wanted.skip_gaps = options.flag("skip_gaps", wanted.skip_gaps);
  options.done();
  return std::make_unique<WindowSource>(arrays, wanted);
}

}  // namespace

const SourceKind& windows() {
  static const SourceKind kKind = {"windows", open_windows};
  return kKind;
}

}  // namespace sources

}  // namespace unidle::data
