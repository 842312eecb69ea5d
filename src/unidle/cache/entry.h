// What a reader of the cache holds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "unidle/cache/tensor.h"

namespace unidle::cache {

/// Where the bytes of an entry lie.
class Held {
 public:
  virtual ~Held() = default;
  std::vector<TensorView> tensors;
  std::uint64_t bytes = 0;
  bool stored = false;
};

/// The arrays of one key. They are mapped from the file, not copied, and stay valid and unchanged for as long as a copy
/// of the Entry lives: eviction passes it over, and a new entry of the same key is another file. Copying is cheap.
/// Thread-safe to read and to copy.
class Entry {
 public:
  Entry() = default;
  explicit Entry(std::shared_ptr<const Held> held) : held_(std::move(held)) {}
  /// Arrays in memory, which hold no file; `stored`: they are in the cache as well.
  static Entry of(std::vector<Tensor> tensors, bool stored);

  std::span<const TensorView> tensors() const {
    return held_ ? std::span(held_->tensors) : std::span<const TensorView>();
  }
  /// Null when there is none of that name.
  const TensorView* find(std::string_view name) const;
  /// Of the file, or of the arrays in memory.
  std::uint64_t bytes() const { return held_ ? held_->bytes : 0; }
  /// It is in the cache. False for what could not be stored (a full disk, no room).
  bool stored() const { return held_ && held_->stored; }
  /// No copy of it is held elsewhere.
  bool sole_owner() const { return held_.use_count() == 1; }

 private:
  std::shared_ptr<const Held> held_;
};

}  // namespace unidle::cache
