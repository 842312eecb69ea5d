// Where samples come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace unidle::data {

enum class DType { kU8, kF32, kI64 };
std::size_t size_of(DType dtype);

/// One tensor of a sample, e.g. {"high", kU8, {128, 128, 3}}. Row-major.
struct Field {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  std::size_t bytes() const;
};

/// The places of one sample: one span a field, of the field's size.
using Places = std::vector<std::span<std::byte>>;

/// What is asked for: one item (a picture pair, say) of one epoch. What is random about it is a function of
/// (seed, epoch, item) alone, so that any thread may make it.
struct ItemRequest {
  std::int64_t item = 0;
  std::int64_t epoch = 0;
  std::uint64_t seed = 0;
};

/// Thread-safe: read() is called from many threads at once.
class Source {
 public:
  virtual ~Source() = default;
  virtual const std::vector<Field>& fields() const = 0;
  virtual std::int64_t items() const = 0;
  /// How many samples one read of an item yields, e.g. several crops a decode. samples an epoch = items * this.
  virtual std::int64_t samples_per_item() const { return 1; }
  /// Makes `samples_per_item()` samples, each written straight into its places; returns the bytes read from storage.
  /// Throws kInput with the file as subject.
  virtual std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const = 0;
};

}  // namespace unidle::data
