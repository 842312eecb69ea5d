#include "unidle/train/sample_search.h"

#include <fmt/format.h>

#include <cstring>

#include "unidle/train/input/device_rows.h"
#include "unidle/train/input/transfer.h"

namespace unidle::train {

namespace {

constexpr std::size_t kNamedAtMost = 8;

data::LoaderOptions one_by_one(data::LoaderOptions options) {
  options.batch = 1;
  options.workers = 0;
  options.allocator = nullptr;
  return options;
}

std::int64_t item_of(const data::Batch& numbers) {
  std::int64_t item = 0;
  std::memcpy(&item, numbers.field(0), sizeof(item));
  return item;
}

}  // namespace

std::vector<std::string> find_not_finite(const data::Source& source, data::LoaderOptions options, std::int64_t count) {
  options = one_by_one(options);
  const ItemNumbers numbers(source);
  data::Loader samples(source, options);
  data::Loader items(numbers, options);
  std::vector<std::string> unfit;
  for (std::int64_t i = 0; i < count; ++i) {
    const data::Batch sample = samples.next();
    const std::int64_t item = item_of(items.next());
    for (std::size_t field = 0; field < source.fields().size(); ++field) {
      const at::Tensor bad = at::isfinite(field_view(sample, source.fields()[field], field)).logical_not().flatten();
      if (bad.any().item<bool>()) {
        unfit.push_back(source.value_name(item, field, bad.nonzero()[0].item<std::int64_t>()));
        break;
      }
    }
  }
  return unfit;
}

std::string name_items(const data::Source& source, data::LoaderOptions options, std::int64_t count) {
  const ItemNumbers numbers(source);
  data::Loader items(numbers, one_by_one(options));
  std::string text = count == 1 ? "item " : "items ";
  for (std::int64_t i = 0; i < count; ++i) {
    if (i == static_cast<std::int64_t>(kNamedAtMost)) {
      return text + fmt::format(" and {} more", count - i);
    }
    text += fmt::format("{}{}", i > 0 ? ", " : "", item_of(items.next()));
  }
  return text;
}

}  // namespace unidle::train
