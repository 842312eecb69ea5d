// DLPack tensors, to and from the memory of the data pipeline.
#pragma once

#include <cstddef>
#include <memory>

#include "unidle/data/batch.h"
#include "unidle/data/buffer_pool.h"
#include "unidle/data/capi/unidle_data.h"
#include "unidle/data/source_kind.h"

namespace unidle::capi {

/// What a tensor of the caller holds. Throws kUsage where it lies elsewhere than in the host's memory, and for types
/// that there are no fields of.
data::ArrayView view_of(const unidle_dl_tensor& tensor);

struct TensorDeleter {
  void operator()(unidle_dl_managed* tensor) const { tensor->deleter(tensor); }
};
using TakenTensor = std::unique_ptr<unidle_dl_managed, TensorDeleter>;

/// The memory of a field, now the tensor's, which gives it back to the pool. `bytes` is its size, as the loader says.
TakenTensor take_field(data::Batch& batch, std::size_t index, const data::Field& field, std::size_t bytes,
                       std::shared_ptr<data::BufferPool> pool);

}  // namespace unidle::capi
