#include "unidle/train/input/input.h"

#include <algorithm>
#include <utility>

namespace unidle::train {

InputOptions input_options(const Config& config) {
  return {.loader = {.workers = static_cast<int>(config.integer("loader.workers")),
                     .prefetch = static_cast<int>(config.integer("loader.prefetch_factor")),
                     .seed = static_cast<std::uint64_t>(config.integer("seed"))},
          .pin_memory = config.flag("loader.pin_memory"),
          .non_blocking = config.flag("transfer.non_blocking"),
          .channels_last = config.flag("layout.channels_last"),
          .on_device = config.flag("data.on_device")};
}

Input::Input(const data::Source& source, std::vector<FieldUse> uses, at::Device device, const InputOptions& options)
    : uses_(std::move(uses)),
      channels_last_(options.channels_last),
      non_blocking_(options.non_blocking && !device.is_cpu()) {
  if (options.on_device) {
    rows_.emplace(source, device, options.loader.workers);
    numbers_.emplace(source);
  }
  const data::Source& delivered = numbers_ ? static_cast<const data::Source&>(*numbers_) : source;
  data::LoaderOptions loader = options.loader;
  if (options.pin_memory && !device.is_cpu()) {
    pinned_ = std::make_unique<PinnedAllocator>();
    loader.allocator = pinned_.get();
  }
  loader_ = std::make_unique<data::Loader>(delivered, loader);
  const std::int64_t together =
      device.is_cpu() ? options.batches_of_step : std::max<std::int64_t>(options.batches_of_step, 1);
  transfer_ = std::make_unique<Transfer>(delivered, *loader_,
                                         Transfer::Options{.device = device,
                                                           .non_blocking = non_blocking_,
                                                           .overlapped = non_blocking_ && pinned(),
                                                           .places = static_cast<std::size_t>(2 * together)});
}

std::vector<at::Tensor> Input::fields(const std::vector<at::Tensor>& moved) const {
  std::vector<at::Tensor> fields = rows_ ? rows_->select(moved[0]) : moved;
  for (std::size_t index = 0; index < fields.size(); ++index) {
    if (uses_[index] == FieldUse::kPicture) {
      fields[index] = picture_to_float(fields[index], channels_last_);
    }
  }
  return fields;
}

}  // namespace unidle::train
