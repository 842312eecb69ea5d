// An entry of the feature cache: as it is, and with the key and the checksum that its bytes ask for, so that the table
// behind them is read.
#include "unidle/cache/blob.h"

#include <cstring>

#include "fuzz.h"
#include "unidle/base/checksum.h"

namespace unidle::fuzz::targets {

namespace {

constexpr std::size_t kHeader = 64;

void parse_cache_blob(std::span<const std::byte> bytes, const cache::Key& key) {
  const cache::ParsedBlob parsed = cache::parse_blob(bytes, key);
  require((parsed.state == cache::BlobState::kGood) == parsed.reason.empty());
  for (const cache::TensorView& tensor : parsed.tensors) {
    require(parsed.state == cache::BlobState::kGood);
    require(cache::array_bytes(tensor.dtype, tensor.shape) == tensor.data.size());
    require(tensor.data.data() >= bytes.data() &&
            tensor.data.data() + tensor.data.size() <= bytes.data() + bytes.size());
    require(reinterpret_cast<const std::byte*>(tensor.name.data()) >= bytes.data());
  }
}

void run_cache_blob(std::string_view input) {
  std::string copy(input);
  const auto bytes = std::as_bytes(std::span(copy));
  cache::Key key;
  parse_cache_blob(bytes, key);
  if (copy.size() < kHeader) {
    return;
  }
  std::memcpy(key.bytes.data(), copy.data() + 32, key.bytes.size());
  const std::uint64_t length = copy.size();
  std::memcpy(copy.data(), "\x89UNIDLE\n", 8);
  std::memcpy(copy.data() + 16, &length, sizeof length);
  const std::uint32_t sum = crc32(crc32(0, bytes.first(12)), bytes.subspan(16));
  std::memcpy(copy.data() + 12, &sum, sizeof sum);
  parse_cache_blob(bytes, key);
}

}  // namespace

const Target& cache_blob() {
  static const Target kTarget = {"cache_blob", run_cache_blob};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
