// The interface of data sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::data {

enum class DType { kBool, kU8, kI8, kU16, kI16, kU32, kI32, kU64, kI64, kF16, kBF16, kF32, kF64 };
std::size_t size_of(DType dtype);
/// numpy's name of the type: "uint8", "float32".
std::string_view name_of(DType dtype);

/// One tensor of a sample, e.g. {"high", kU8, {128, 128, 3}}. Row-major.
struct Field {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  /// The first extent varies by sample; shape[0] is the maximum. A batch is as long as its longest sample, and the
  /// source pads the others.
  bool ragged = false;

  /// Of one sample; the largest if sizes vary.
  std::size_t bytes() const;
  /// Of one step along the first extent.
  std::size_t row_bytes() const;
};

/// Destination of one sample: one span per field, sized as in its batch.
using Places = std::vector<std::span<std::byte>>;

/// Destination of one field of several samples: sample i starts at first + i * stride.
struct Rows {
  std::byte* first = nullptr;
  std::size_t stride = 0;  // bytes; size of one sample in the batch

  std::span<std::byte> at(std::size_t sample) const { return {first + sample * stride, stride}; }
};

/// A request for one item (such as a picture pair) of one epoch. Its randomness depends only on (seed, epoch, item), so
/// any thread may make it.
struct ItemRequest {
  std::int64_t item = 0;
  std::int64_t epoch = 0;
  std::uint64_t seed = 0;
};

/// Thread-safe: many threads call read(), gather() and extent() concurrently.
class Source {
 public:
  virtual ~Source() = default;
  virtual const std::vector<Field>& fields() const = 0;
  virtual std::int64_t items() const = 0;
  /// Samples per read item, such as several crops per decode. Samples per epoch = items * this.
  virtual std::int64_t samples_per_item() const { return 1; }
  /// True when an item is the same in every epoch and for every seed, so that it may be cached.
  virtual bool same_every_epoch() const { return false; }
  /// Makes `samples_per_item()` samples directly in their destinations. Returns the bytes read from storage. Throws
  /// kInput with the file as subject.
  virtual std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const = 0;

  /// How many items to make at once: more than 1 when an item is as cheap as scheduling it; an item must then be one
  /// sample.
  virtual std::int64_t grain() const { return 1; }
  /// Makes consecutive items of a batch: item i is sample i of each field's rows. Otherwise like read().
  virtual std::uint64_t gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const;

  /// How many items expect() announces ahead; 0: expect() is not called.
  virtual std::int64_t look_ahead() const { return 0; }
  /// Announces that these items will be read soon, in this order, so that slow reads may start. Returns at once. Does
  /// not throw.
  virtual void expect(std::span<const ItemRequest>) const {}

  /// The first extent of a ragged field for each sample of an item, known before the item is read.
  virtual std::int64_t extent(std::int64_t item, std::size_t field) const;

  /// How many consecutive items are fastest to read together: a file, or a part of a large one. 0: no difference.
  virtual std::int64_t run() const { return 0; }
  /// A hint that these items will be requested soon. Returns at once; affects only speed.
  virtual void will_need(std::int64_t, std::int64_t) const {}

  /// Names value number `value` of an item's sample for people: "'rooms' in row 7 of houses.csv".
  virtual std::string value_name(std::int64_t item, std::size_t field, std::int64_t value) const;

  /// Additional facts such as class names, as a JSON object.
  virtual std::string describe() const { return "{}"; }
};

}  // namespace unidle::data
