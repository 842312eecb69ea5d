// An entry as its readers hold it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "unidle/cache/tensor.h"

namespace unidle::cache {

/// Owns the memory of an entry.
class Held {
 public:
  virtual ~Held() = default;
  std::vector<TensorView> tensors;
  std::uint64_t bytes = 0;
  bool stored = false;
};

/// The arrays of one key, mapped from the file without a copy. They stay valid and unchanged while a copy of the Entry
/// lives: eviction skips it, and a new entry of the key is another file. Copying is cheap. Thread-safe to read and to
/// copy.
class Entry {
 public:
  Entry() = default;
  explicit Entry(std::shared_ptr<const Held> held) : held_(std::move(held)) {}
  /// Wraps arrays in memory, without a file; `stored`: they are in the cache as well.
  static Entry of(std::vector<Tensor> tensors, bool stored);

  std::span<const TensorView> tensors() const {
    return held_ ? std::span(held_->tensors) : std::span<const TensorView>();
  }
  /// Null when there is no array of that name.
  const TensorView* find(std::string_view name) const;
  /// Size of the file, or of the arrays in memory.
  std::uint64_t bytes() const { return held_ ? held_->bytes : 0; }
  /// True when it is in the cache. False when it could not be stored (disk full, no room).
  bool stored() const { return held_ && held_->stored; }
  /// True when no other copy exists.
  bool sole_owner() const { return held_.use_count() == 1; }

 private:
  std::shared_ptr<const Held> held_;
};

}  // namespace unidle::cache
