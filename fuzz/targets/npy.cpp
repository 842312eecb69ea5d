// numpy's files. The first byte chooses whether the rest is an .npy or an .npz. What is read is what the headers
// promise, wherever they say that it lies.
#include "unidle/data/sources/npy.h"
#include <cstring>
#include <vector>
#include "fuzz.h"

namespace unidle::fuzz::targets {

namespace {

constexpr std::int64_t kMostRows = 64;
constexpr std::size_t kMostRowBytes = 1 << 20;  // more only takes time

void read_rows(const data::NpySource& source) {
  std::size_t row_bytes = 0;
  for (const data::Field& field : source.fields()) {
    for (const std::int64_t extent : field.shape) {
      require(extent >= 0);
    }
    row_bytes += field.bytes();
  }
  if (row_bytes > kMostRowBytes) {
    return;
  }
  for (std::int64_t item = 0; item < std::min(kMostRows, source.items()); ++item) {
    std::vector<std::vector<std::byte>> memory;
    data::Places places;
    for (const data::Field& field : source.fields()) {
      memory.emplace_back(field.bytes());
    }
    for (std::vector<std::byte>& part : memory) {
      places.emplace_back(part);
    }
    require(source.read({item, 0, 0}, {&places, 1}) == row_bytes);
  }
}

void run_npy(std::string_view bytes) {
  if (bytes.empty()) {
    return;
  }
  const bool archive = (bytes[0] & 1) != 0;
  const std::filesystem::path path = put(archive ? "npz/a.npz" : "npy/x.npy", bytes.substr(1));
  may_refuse([&] { read_rows(data::NpySource(archive ? path.parent_path().string() : path.string(), {"x"})); });
}

}  // namespace

const Target& npy() {
  static const Target kTarget = {"npy", run_npy};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
