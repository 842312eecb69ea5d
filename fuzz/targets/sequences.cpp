// Texts as CSV, FASTA or lines; the first byte chooses. Every batch holds what its extents promise, and each text comes
// once an epoch.
#include "unidle/data/sources/sequences.h"
#include <vector>
#include "fuzz.h"

namespace unidle::fuzz::targets {

namespace {

void read_batches(const data::SequenceSource& source) {
  std::int64_t texts = 0;
  for (std::int64_t item = 0; item < source.items(); ++item) {
    std::vector<std::vector<std::byte>> memory;
    data::Places places;
    for (std::size_t field = 0; field < source.fields().size(); ++field) {
      require(source.extent(item, field) <= source.fields()[field].shape[0]);
      memory.emplace_back(static_cast<std::size_t>(source.extent(item, field)) * sizeof(std::int64_t));
    }
    for (std::vector<std::byte>& part : memory) {
      places.emplace_back(part);
    }
    source.read({item, 3, 7}, {&places, 1});
    texts += source.extent(item, 1);
  }
  require(texts == source.texts());
  require(source.padding() >= 0 && source.padding() <= 0.05 + 1e-9);  // reckoned in another order
}

void run_sequences(std::string_view bytes) {
  if (bytes.empty()) {
    return;
  }
  data::SequenceOptions options{.tokens_per_batch = 64};
  const char* name = "sequences/a.txt";
  if (bytes[0] % 3 == 1) {
    name = "sequences/a.fasta";
  } else if (bytes[0] % 3 == 2) {
    name = "sequences/a.csv";
    options.column = "a";
    options.label = bytes[0] % 2 == 0 ? "b" : "";
  }
  const std::filesystem::path path = put(name, bytes.substr(1));
  may_refuse([&] { read_batches(data::SequenceSource(path.string(), options)); });
}

}  // namespace

const Target& sequences() {
  static const Target kTarget = {"sequences", run_sequences};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
