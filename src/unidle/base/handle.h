// RAII for C handles.
#pragma once

#include <unistd.h>

#include <utility>

namespace unidle {

/// Owns one C handle. Traits give `Type`, `invalid()` and `close(Type)`; close must not throw.
/// Not thread-safe; moved-from handles are invalid.
template <typename Traits>
class UniqueHandle {
 public:
  using Type = typename Traits::Type;

  UniqueHandle() = default;
  explicit UniqueHandle(Type value) : value_(value) {}
  UniqueHandle(UniqueHandle&& other) noexcept : value_(std::exchange(other.value_, Traits::invalid())) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) {
      reset(std::exchange(other.value_, Traits::invalid()));
    }
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() { reset(); }

  Type get() const { return value_; }
  explicit operator bool() const { return value_ != Traits::invalid(); }
  Type release() { return std::exchange(value_, Traits::invalid()); }
  void reset(Type value = Traits::invalid()) {
    if (value_ != Traits::invalid()) {
      Traits::close(value_);
    }
    value_ = value;
  }

 private:
  Type value_ = Traits::invalid();
};

struct FdTraits {
  using Type = int;
  static Type invalid() { return -1; }
  static void close(Type fd) { ::close(fd); }
};
using UniqueFd = UniqueHandle<FdTraits>;

}  // namespace unidle
