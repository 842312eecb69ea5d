// Windows of time series and the values that follow them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unidle/data/source.h"
#include "unidle/data/source_kind.h"

namespace unidle::data {

struct WindowOptions {
  std::int64_t length = 1;              // input steps
  std::int64_t horizon = 1;             // target steps after them
  std::int64_t stride = 1;              // steps between the starts of windows
  std::vector<std::int64_t> targets{};  // target columns; all when empty
  bool skip_gaps = true;                // a step with a NaN splits the series; no window spans it
};

/// Series of float32, {steps, columns} or {steps}, each contiguous, all with the same columns. A sample is "input"
/// {length, columns} and "target" {horizon, columns or targets}. Gaps split a series into segments; the windows of a
/// segment start at its first step, every `stride` steps. Windows are views: only batches are copied, and the index
/// takes a few numbers per segment. The series must stay alive and unchanged as long as the source.
///
/// Throws kUsage for invalid series and options, kInput when no window fits. Thread-safe.
class WindowSource final : public Source {
 public:
  WindowSource(std::span<const ArrayView> series, const WindowOptions& options);

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return stretches_.back().end; }
  std::int64_t grain() const override { return grain_; }
  bool same_every_epoch() const override { return true; }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override;
  std::uint64_t gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const override;

  /// The start of an item's window.
  struct Place {
    std::size_t series;
    std::int64_t step;
  };
  Place place(std::int64_t item) const;

 private:
  struct Stretch {
    std::int64_t end;  // number of items up to this segment's end
    std::size_t series;
    std::int64_t first_step;
  };
  void add_series(std::size_t number, const ArrayView& array);
  void add_stretch(std::size_t series, std::int64_t begin, std::int64_t end);
  void copy(std::int64_t item, std::byte* input, std::byte* target) const;

  WindowOptions options_;
  std::int64_t columns_ = 0;
  std::int64_t grain_ = 1;
  std::vector<Field> fields_;
  std::vector<const float*> series_;
  std::vector<Stretch> stretches_;
};

}  // namespace unidle::data
