// Where samples come from.
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
/// As numpy names it: "uint8", "float32".
std::string_view name_of(DType dtype);

/// One tensor of a sample, e.g. {"high", kU8, {128, 128, 3}}. Row-major.
struct Field {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  /// The first extent varies from sample to sample, and shape[0] is the largest there is. A batch is as long as its
  /// longest sample; the source fills up the others.
  bool ragged = false;

  /// Of one sample; of the largest where they vary.
  std::size_t bytes() const;
  /// Of one step along the first extent.
  std::size_t row_bytes() const;
};

/// The places of one sample: one span a field, of the size that the sample has in its batch.
using Places = std::vector<std::span<std::byte>>;

/// The places of one field of several samples: sample i lies at first + i * stride.
struct Rows {
  std::byte* first = nullptr;
  std::size_t stride = 0;  // bytes; the size of one sample in the batch

  std::span<std::byte> at(std::size_t sample) const { return {first + sample * stride, stride}; }
};

/// What is asked for: one item (a picture pair, say) of one epoch. What is random about it is a function of
/// (seed, epoch, item) alone, so that any thread may make it.
struct ItemRequest {
  std::int64_t item = 0;
  std::int64_t epoch = 0;
  std::uint64_t seed = 0;
};

/// Thread-safe: read(), gather() and extent() are called from many threads at once.
class Source {
 public:
  virtual ~Source() = default;
  virtual const std::vector<Field>& fields() const = 0;
  virtual std::int64_t items() const = 0;
  /// How many samples one read of an item yields, e.g. several crops a decode. samples an epoch = items * this.
  virtual std::int64_t samples_per_item() const { return 1; }
  /// Whether an item is the same in every epoch and with every seed, so that it may be read once and kept.
  virtual bool same_every_epoch() const { return false; }
  /// Makes `samples_per_item()` samples, each written straight into its places; returns the bytes read from storage.
  /// Throws kInput with the file as subject.
  virtual std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const = 0;

  /// How many items are best made at once: more than 1 where an item costs no more than handing it out, and then each
  /// is one sample.
  virtual std::int64_t grain() const { return 1; }
  /// Makes items that follow each other in a batch: item i is sample i of each field's rows. As read() otherwise.
  virtual std::uint64_t gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const;

  /// How many items ahead of what is made expect() is told of; 0: none, and it is not called.
  virtual std::int64_t look_ahead() const { return 0; }
  /// These items will be read, soon and in this order: what takes long may begin. Returns at once and does not throw.
  virtual void expect(std::span<const ItemRequest>) const {}

  /// The first extent of an item's field that is ragged, known before the item is read: of each of its samples.
  virtual std::int64_t extent(std::int64_t item, std::size_t field) const;

  /// How many items that follow each other are read from storage fastest together: a file, or a part of a large one.
  /// 0: it makes no difference.
  virtual std::int64_t run() const { return 0; }
  /// These items will be asked for before long. Returns at once; nothing depends on it but speed.
  virtual void will_need(std::int64_t, std::int64_t) const {}

  /// How a person finds a value, number `value` of a sample of the item: "'rooms' in row 7 of houses.csv".
  virtual std::string value_name(std::int64_t item, std::size_t field, std::int64_t value) const;

  /// What else is worth knowing, e.g. the names of classes: a JSON object.
  virtual std::string describe() const { return "{}"; }
};

}  // namespace unidle::data
