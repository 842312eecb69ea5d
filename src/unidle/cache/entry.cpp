#include "unidle/cache/entry.h"

#include <algorithm>

namespace unidle::cache {

namespace {

class HeldInMemory final : public Held {
 public:
  HeldInMemory(std::vector<Tensor> arrays, bool in_cache) : arrays_(std::move(arrays)) {
    stored = in_cache;
    tensors = views_of(arrays_);
    for (const Tensor& array : arrays_) {
      bytes += array.data.size();
    }
  }

 private:
  std::vector<Tensor> arrays_;
};

}  // namespace

Entry Entry::of(std::vector<Tensor> tensors, bool stored) {
  return Entry(std::make_shared<HeldInMemory>(std::move(tensors), stored));
}

const TensorView* Entry::find(std::string_view name) const {
  const auto all = tensors();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const TensorView& tensor) { return tensor.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace unidle::cache
