// What Python asks a source of arrays for: the kind on the first line, its options as JSON behind it. What is opened
// gives every item.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>
#include "fuzz.h"
#include "unidle/data/source_kind.h"

namespace unidle::fuzz::targets {

namespace {

constexpr std::int64_t kRows = 24;
constexpr std::int64_t kColumns = 3;
constexpr std::int64_t kMostItems = 64;
constexpr std::size_t kMostItemBytes = 1 << 20;  // more only takes time

/// Kinds that read the arrays they are given; the others open any path.
bool reads_arrays(std::string_view kind) { return kind == "arrays" || kind == "windows"; }

void read_items(const data::Source& source) {
  std::vector<std::vector<std::byte>> memory;
  data::Places places;
  std::size_t bytes = 0;
  for (const data::Field& field : source.fields()) {
    bytes += field.bytes();
    if (bytes > kMostItemBytes) {
      return;
    }
    memory.emplace_back(field.bytes());
  }
  for (std::vector<std::byte>& part : memory) {
    places.emplace_back(part);
  }
  for (std::int64_t item = 0; item < std::min(kMostItems, source.items()); ++item) {
    source.read({item, 0, 0}, {&places, 1});
    source.read({source.items() - 1 - item, 0, 0}, {&places, 1});
  }
}

void run_source_options(std::string_view bytes) {
  const auto parts = split(bytes, "\n");  // clang 14 hands no structured binding to a lambda
  if (!reads_arrays(parts.first)) {
    return;
  }
  // On the heap, so that a sanitizer sees a read beside it.
  const std::vector<float> values(kRows * kColumns, 1.0F);
  constexpr auto kRowBytes = static_cast<std::int64_t>(kColumns * sizeof(float));
  const std::array<data::ArrayView, 1> arrays = {
      data::ArrayView{.data = reinterpret_cast<const std::byte*>(values.data()),
                      .dtype = data::DType::kF32,
                      .shape = {kRows, kColumns},
                      .strides = {kRowBytes, sizeof(float)}}};
  may_refuse([&] { read_items(*data::open_source(parts.first, parts.second, arrays)); },
             {ErrorCode::kInput, ErrorCode::kUsage});
}

}  // namespace

const Target& source_options() {
  static const Target kTarget = {"source_options", run_source_options};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
