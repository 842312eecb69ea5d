// Windows of time series, with what comes after them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unidle/data/source.h"
#include "unidle/data/source_kind.h"

namespace unidle::data {

struct WindowOptions {
  std::int64_t length = 1;              // steps that are looked at
  std::int64_t horizon = 1;             // steps after them that are to be told
  std::int64_t stride = 1;              // steps from one window to the next
  std::vector<std::int64_t> targets{};  // columns of what is to be told; all when empty
  bool skip_gaps = true;                // steps with a NaN end a stretch; no window reaches over one
};

/// Series of float32, {steps, columns} or {steps}, each in one piece; all have the same columns. A sample is "input"
/// {length, columns} and "target" {horizon, columns or targets}. Gaps cut a series into stretches; the windows of a
/// stretch begin at its first step and go on by `stride`. Windows are views: nothing is copied but into batches, and
/// the index takes a few numbers a stretch. The series must live, and stay as they are, as long as the source.
///
/// Throws kUsage for series and options that make no sense, kInput when not one window fits. Thread-safe.
class WindowSource final : public Source {
 public:
  WindowSource(std::span<const ArrayView> series, const WindowOptions& options);

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return stretches_.back().end; }
  std::int64_t grain() const override { return grain_; }
  bool same_every_epoch() const override { return true; }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override;
  std::uint64_t gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const override;

  /// Where an item's window begins.
  struct Place {
    std::size_t series;
    std::int64_t step;
  };
  Place place(std::int64_t item) const;

 private:
  struct Stretch {
    std::int64_t end;  // items of this and all earlier stretches
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
