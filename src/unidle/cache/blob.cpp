#include "unidle/cache/blob.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <type_traits>

#include "unidle/base/checksum.h"
#include "unidle/base/error.h"

namespace unidle::cache {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

namespace {

constexpr std::array<char, 8> kMagic = {'\x89', 'U', 'N', 'I', 'D', 'L', 'E', '\n'};
constexpr std::size_t kMaxRank = 32;
constexpr std::size_t kMaxTensors = 4096;
constexpr std::size_t kMaxName = 1024;
constexpr std::array<std::string_view, 2> kNames = {"unidle:name", "unidle:bytes name"};  // reserved array names

struct Header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t checksum;  // CRC-32 of all other bytes of the file
  std::uint64_t file_bytes;
  std::uint32_t tensors;
  std::uint32_t table_bytes;
  std::array<std::uint8_t, 32> key;
};
static_assert(sizeof(Header) == 64 && std::is_trivially_copyable_v<Header>);
constexpr std::size_t kBeforeChecksum = offsetof(Header, checksum);
constexpr std::size_t kAfterChecksum = kBeforeChecksum + sizeof(std::uint32_t);

/// Followed by the extents, eight bytes each, and the name, padded to eight.
struct TableRow {
  std::uint16_t name_bytes;
  std::uint8_t dtype;
  std::uint8_t rank;
  std::uint32_t zero;
  std::uint64_t offset;  // from the start of the file
  std::uint64_t bytes;
};
static_assert(sizeof(TableRow) == 24 && std::is_trivially_copyable_v<TableRow>);

constexpr std::uint64_t aligned(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

[[noreturn]] void refuse_tensor(const TensorView& tensor, std::string_view why) {
  throw Error(ErrorCode::kUsage, fmt::format("tensor {}", tensor.name), std::string(why));
}

void check_tensors(std::span<const TensorView> tensors) {
  std::set<std::string_view> names;
  if (tensors.size() > kMaxTensors) {
    throw Error(ErrorCode::kUsage, "cache entry", fmt::format("has more than {} tensors", kMaxTensors));
  }
  for (const TensorView& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      refuse_tensor(tensor, "is there twice in one entry");
    }
    if (tensor.name.size() > kMaxName || tensor.shape.size() > kMaxRank || item_bytes(tensor.dtype) == 0) {
      refuse_tensor(tensor, fmt::format("needs a name of at most {} bytes, at most {} axes and a known type", kMaxName,
                                        kMaxRank));
    }
    if (array_bytes(tensor.dtype, tensor.shape) != tensor.data.size()) {
      refuse_tensor(tensor, "has more or less data than its type and shape say");
    }
  }
}

template <typename T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::uint32_t checksum_of(const EncodedBlob& blob) {
  static constexpr std::array<std::byte, kTensorAlignment> kZeros{};
  const auto head = std::as_bytes(std::span(blob.head));
  std::uint32_t sum = crc32(0, head.first(kBeforeChecksum));
  sum = crc32(sum, head.subspan(kAfterChecksum));
  for (const EncodedBlob::Piece& piece : blob.pieces) {
    sum = crc32(sum, piece.data);
    sum = crc32(sum, std::span(kZeros).first(piece.padding));
  }
  return sum;
}

}  // namespace

bool is_named(std::span<const TensorView> tensors) {
  return !tensors.empty() && std::find(kNames.begin(), kNames.end(), tensors.front().name) != kNames.end();
}

bool is_named_blob(std::span<const std::byte> begin) {
  TableRow row{};
  if (begin.size() < sizeof(Header) + sizeof row) {
    return false;
  }
  std::memcpy(&row, begin.data() + sizeof(Header), sizeof row);
  const std::size_t at = sizeof(Header) + sizeof row + row.rank * sizeof(std::uint64_t);
  return row.rank <= kMaxRank && at + row.name_bytes <= begin.size() &&
         std::find(kNames.begin(), kNames.end(),
                   std::string_view(reinterpret_cast<const char*>(begin.data()) + at, row.name_bytes)) != kNames.end();
}

EncodedBlob encode_blob(const Key& key, std::span<const TensorView> tensors) {
  check_tensors(tensors);
  std::uint64_t table_bytes = 0;
  for (const TensorView& tensor : tensors) {
    table_bytes += sizeof(TableRow) + tensor.shape.size() * sizeof(std::uint64_t) + aligned(tensor.name.size(), 8);
  }
  EncodedBlob blob;
  std::uint64_t offset = aligned(sizeof(Header) + table_bytes, kTensorAlignment);
  std::string table;
  table.reserve(table_bytes);
  for (const TensorView& tensor : tensors) {
    const std::uint64_t padded = aligned(tensor.data.size(), kTensorAlignment);
    append(table, TableRow{static_cast<std::uint16_t>(tensor.name.size()), static_cast<std::uint8_t>(tensor.dtype),
                           static_cast<std::uint8_t>(tensor.shape.size()), 0, offset, tensor.data.size()});
    table.append(reinterpret_cast<const char*>(tensor.shape.data()), tensor.shape.size() * sizeof(std::uint64_t));
    table.append(tensor.name);
    table.resize(aligned(table.size(), 8));
    blob.pieces.push_back({tensor.data, static_cast<std::size_t>(padded - tensor.data.size())});
    offset += padded;
  }
  blob.bytes = offset;
  blob.named = is_named(tensors);
  Header header{kMagic,
                kBlobVersion,
                0,
                offset,
                static_cast<std::uint32_t>(tensors.size()),
                static_cast<std::uint32_t>(table_bytes),
                key.bytes};
  append(blob.head, header);
  blob.head += table;
  blob.head.resize(aligned(blob.head.size(), kTensorAlignment));
  header.checksum = checksum_of(blob);
  std::memcpy(blob.head.data(), &header, sizeof header);
  return blob;
}

namespace {

/// Reads the table of a blob with a valid header and checksum, and still validates every value.
class TableReader {
 public:
  TableReader(std::span<const std::byte> file, const Header& header)
      : file_(file), table_(file.subspan(sizeof(Header), header.table_bytes)), left_(header.tensors) {}

  bool read(std::vector<TensorView>& tensors) {
    std::set<std::string_view> names;
    for (; left_ > 0; --left_) {
      TensorView tensor;
      if (!row(tensor) || !names.insert(tensor.name).second) {
        return false;
      }
      tensors.push_back(std::move(tensor));
    }
    return table_.empty();
  }

 private:
  bool take(void* into, std::size_t bytes) {
    if (table_.size() < bytes) {
      return false;
    }
    std::memcpy(into, table_.data(), bytes);
    table_ = table_.subspan(bytes);
    return true;
  }

  bool row(TensorView& tensor) {
    TableRow row{};
    if (!take(&row, sizeof row) || row.rank > kMaxRank || row.name_bytes > kMaxName || row.zero != 0) {
      return false;
    }
    tensor.dtype = static_cast<DType>(row.dtype);
    tensor.shape.resize(row.rank);
    if (item_bytes(tensor.dtype) == 0 ||
        (row.rank > 0 && !take(tensor.shape.data(), row.rank * sizeof(std::uint64_t)))) {
      return false;
    }
    const std::size_t padded = aligned(row.name_bytes, 8);
    if (table_.size() < padded || row.offset % kTensorAlignment != 0 || row.offset > file_.size() ||
        row.bytes > file_.size() - row.offset || array_bytes(tensor.dtype, tensor.shape) != row.bytes) {
      return false;
    }
    tensor.name = {reinterpret_cast<const char*>(table_.data()), row.name_bytes};
    table_ = table_.subspan(padded);
    tensor.data = file_.subspan(row.offset, row.bytes);
    return true;
  }

  std::span<const std::byte> file_;
  std::span<const std::byte> table_;
  std::uint32_t left_;
};

ParsedBlob damaged_blob(std::string_view reason) { return {BlobState::kDamaged, std::string(reason), {}}; }

}  // namespace

ParsedBlob parse_blob(std::span<const std::byte> bytes, const Key& key) {
  Header header{};
  if (bytes.size() < sizeof header) {
    return damaged_blob("is shorter than a header");
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) {
    return damaged_blob("does not begin as a blob");
  }
  std::uint32_t sum = crc32(0, bytes.first(kBeforeChecksum));
  sum = crc32(sum, bytes.subspan(kAfterChecksum));
  // The magic, the version and the checksum are the same in every version of the format.
  if (sum != header.checksum) {
    return damaged_blob("has another checksum than its header says");
  }
  if (header.version > kBlobVersion) {
    return {BlobState::kNewer, fmt::format("has version {} of the format", header.version), {}};
  }
  if (header.version == 0 || header.file_bytes != bytes.size() || header.tensors > kMaxTensors ||
      header.table_bytes > bytes.size() - sizeof header) {
    return damaged_blob("has a header that cannot be");
  }
  if (header.key != key.bytes) {
    return damaged_blob("is the entry of another key");
  }
  ParsedBlob parsed{BlobState::kGood, {}, {}};
  return TableReader(bytes, header).read(parsed.tensors) ? std::move(parsed)
                                                         : damaged_blob("has a table that cannot be");
}

}  // namespace unidle::cache
