#include "unidle/cache/blob.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "unidle/base/checksum.h"
#include "unidle/base/error.h"
#include "unidle/cache/testing/scratch_cache.h"

namespace unidle::cache {
namespace {

using testing::key_number;
using testing::numbered;

std::vector<std::byte> bytes_of(const EncodedBlob& blob) {
  std::string all = blob.head;
  for (const EncodedBlob::Piece& piece : blob.pieces) {
    all.append(reinterpret_cast<const char*>(piece.data.data()), piece.data.size());
    all.append(piece.padding, '\0');
  }
  const auto bytes = std::as_bytes(std::span(all));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> blob_of(const Key& key, const std::vector<Tensor>& tensors) {
  return bytes_of(encode_blob(key, views_of(tensors)));
}

ErrorCode code_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(Checksum, IsThatOfGzipWhateverReckonsIt) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(5000);
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(random());
  }
  const auto text = std::as_bytes(std::span("123456789", 9));
  EXPECT_EQ(crc32(0, text), 0xcbf43926U);
  for (const std::size_t length : {0, 1, 7, 8, 63, 64, 65, 1000, 5000}) {
    const auto part = std::span(bytes).first(length);
    EXPECT_EQ(crc32(0, part), crc32_by_zlib(0, part)) << length;
    EXPECT_EQ(crc32(crc32(0, part.first(length / 3)), part.subspan(length / 3)), crc32_by_zlib(0, part));
  }
}

TEST(Blob, GivesBackWhatWasPutIn) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<Tensor> tensors;
    const std::size_t count = random() % 6;
    for (std::size_t i = 0; i < count; ++i) {
      Tensor tensor;
      tensor.name = std::to_string(i) + std::string(random() % 40, 'n');
      tensor.dtype = static_cast<DType>(random() % 15);
      for (std::size_t axes = random() % 4; axes > 0; --axes) {
        tensor.shape.push_back(random() % 6);
      }
      tensor.data.resize(array_bytes(tensor.dtype, tensor.shape).value());
      for (std::byte& byte : tensor.data) {
        byte = static_cast<std::byte>(random());
      }
      tensors.push_back(std::move(tensor));
    }
    const Key key = key_number(static_cast<std::uint64_t>(round));
    const std::vector<std::byte> bytes = blob_of(key, tensors);
    const ParsedBlob parsed = parse_blob(bytes, key);
    ASSERT_EQ(parsed.state, BlobState::kGood) << parsed.reason;
    ASSERT_EQ(parsed.tensors.size(), tensors.size());
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(parsed.tensors[i].name, tensors[i].name);
      EXPECT_EQ(parsed.tensors[i].dtype, tensors[i].dtype);
      EXPECT_EQ(parsed.tensors[i].shape, tensors[i].shape);
      EXPECT_TRUE(std::equal(tensors[i].data.begin(), tensors[i].data.end(), parsed.tensors[i].data.begin(),
                             parsed.tensors[i].data.end()));
      EXPECT_EQ((parsed.tensors[i].data.data() - bytes.data()) % kTensorAlignment, 0);
    }
  }
}

TEST(Blob, EveryFlippedBitAndEveryCutIsSeen) {
  const Key key = key_number(1);
  std::vector<std::byte> bytes = blob_of(key, numbered(1, 20));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[at] ^= static_cast<std::byte>(1 << bit);
      EXPECT_NE(parse_blob(bytes, key).state, BlobState::kGood) << at << ":" << bit;
      bytes[at] ^= static_cast<std::byte>(1 << bit);
    }
    EXPECT_EQ(parse_blob(std::span(bytes).first(at), key).state, BlobState::kDamaged) << at;
  }
  bytes.push_back(std::byte{0});
  EXPECT_EQ(parse_blob(bytes, key).state, BlobState::kDamaged);
  bytes.pop_back();
  EXPECT_EQ(parse_blob(bytes, key).state, BlobState::kGood);
}

TEST(Blob, IsNotTakenForAnotherKeys) {
  EXPECT_EQ(parse_blob(blob_of(key_number(1), numbered(1)), key_number(2)).state, BlobState::kDamaged);
}

/// Overwrites a value in the blob and corrects the checksum.
template <typename T>
std::vector<std::byte> forged(std::vector<std::byte> bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
  std::uint32_t sum = crc32(0, std::span(bytes).first(12));
  sum = crc32(sum, std::span(bytes).subspan(16));
  std::memcpy(bytes.data() + 12, &sum, sizeof sum);
  return bytes;
}

TEST(Blob, AVersionToComeIsNotCalledDamaged) {
  const Key key = key_number(1);
  EXPECT_EQ(parse_blob(forged<std::uint32_t>(blob_of(key, numbered(1)), 8, 2), key).state, BlobState::kNewer);
  EXPECT_EQ(parse_blob(forged<std::uint32_t>(blob_of(key, numbered(1)), 8, 0), key).state, BlobState::kDamaged);
}

TEST(Blob, ARightChecksumMakesNoWrongTableGood) {
  const Key key = key_number(1);
  const std::vector<std::byte> good = blob_of(key, numbered(1));
  ASSERT_EQ(parse_blob(forged<std::uint16_t>(good, 64, 6), key).state, BlobState::kGood);  // unchanged: "values"
  EXPECT_EQ(parse_blob(forged<std::uint64_t>(good, 16, 1 << 30), key).state, BlobState::kDamaged);     // file_bytes
  EXPECT_EQ(parse_blob(forged<std::uint32_t>(good, 24, 3), key).state, BlobState::kDamaged);           // tensors
  EXPECT_EQ(parse_blob(forged<std::uint32_t>(good, 24, 1), key).state, BlobState::kDamaged);           // tensors
  EXPECT_EQ(parse_blob(forged<std::uint32_t>(good, 28, 0xfffffff0), key).state, BlobState::kDamaged);  // table_bytes
  EXPECT_EQ(parse_blob(forged<std::uint16_t>(good, 64, 0xffff), key).state, BlobState::kDamaged);      // name_bytes
  EXPECT_EQ(parse_blob(forged<std::uint8_t>(good, 66, 15), key).state, BlobState::kDamaged);           // dtype
  EXPECT_EQ(parse_blob(forged<std::uint8_t>(good, 67, 255), key).state, BlobState::kDamaged);          // rank
  EXPECT_EQ(parse_blob(forged<std::uint64_t>(good, 72, ~std::uint64_t{63}), key).state, BlobState::kDamaged);  // offset
  EXPECT_EQ(parse_blob(forged<std::uint64_t>(good, 72, 1), key).state, BlobState::kDamaged);                   // offset
  EXPECT_EQ(parse_blob(forged<std::uint64_t>(good, 80, 1 << 20), key).state, BlobState::kDamaged);             // bytes
  EXPECT_EQ(parse_blob(forged<std::uint64_t>(good, 88, ~std::uint64_t{0}), key).state, BlobState::kDamaged);   // extent
}

TEST(Blob, RefusesWhatIsNoEntry) {
  const Key key = key_number(1);
  std::vector<Tensor> twice = {numbered(1)[0], numbered(1)[0]};
  std::vector<Tensor> shorter = numbered(1);
  shorter[0].data.pop_back();
  std::vector<Tensor> named = numbered(1);
  named[0].name.assign(5000, 'n');
  for (const auto& tensors : {twice, shorter, named}) {
    EXPECT_EQ(code_of([&] { encode_blob(key, views_of(tensors)); }), ErrorCode::kUsage);
  }
}

TEST(ArrayBytes, SaysWhenThereAreTooMany) {
  const auto bytes = [](std::vector<std::uint64_t> shape) { return array_bytes(DType::kF64, shape); };
  EXPECT_EQ(bytes({}), 8U);
  EXPECT_EQ(bytes({3, 4}), 96U);
  EXPECT_EQ(bytes({1ULL << 40, 1ULL << 40}), std::nullopt);
  EXPECT_EQ(bytes({0, ~0ULL}), 0U);
  EXPECT_EQ(bytes({~0ULL}), std::nullopt);
}

TEST(Key, DependsOnEveryPartAndOnWhereItEnds) {
  const FeatureKey base{"ACDE", "folder", "1", "{}", "float32"};
  FeatureKey input = base, identity = base, version = base, parameters = base, layout = base, shifted = base;
  input.input = "ACDF";
  identity.identity = "folder2";
  version.version = "2";
  parameters.parameters = R"({"a":1})";
  layout.layout = "float16";
  shifted.identity = "folder1";
  shifted.version = "";
  std::set<std::string> keys = {key_of(base).hex()};
  for (const FeatureKey& other : {input, identity, version, parameters, layout, shifted}) {
    EXPECT_TRUE(keys.insert(key_of(other).hex()).second);
  }
  EXPECT_EQ(key_of(base), key_of(base));
  EXPECT_EQ(Key::from_hex(key_of(base).hex()), key_of(base));
  EXPECT_EQ(Key::from_hex("12"), std::nullopt);
  EXPECT_EQ(Key::from_hex(std::string(64, 'G')), std::nullopt);
}

TEST(Key, StaysWhatItWasInEarlierVersions) {
  // Computed by hashlib.sha256 over kind, both lengths (64 bits, little-endian), name and value of each part.
  EXPECT_EQ(key_of_name("abc").hex(), "21ff73d5a660cc627a7f91ba5619161b9961a41ce2071a8eea8e7778262934dc");
}

}  // namespace
}  // namespace unidle::cache
