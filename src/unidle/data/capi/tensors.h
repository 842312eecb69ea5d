// DLPack tensors, to and from the memory of the data pipeline.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "unidle/data/batch.h"
#include "unidle/data/buffer_pool.h"
#include "unidle/data/capi/unidle_data.h"
#include "unidle/data/loader.h"
#include "unidle/data/source_kind.h"

namespace unidle::capi {

/// What a tensor of the caller holds. Throws kUsage where it lies elsewhere than in the host's memory, and for types
/// that there are no fields of.
data::ArrayView view_of(const unidle_dl_tensor& tensor);

struct TensorDeleter {
  void operator()(unidle_dl_managed* tensor) const { tensor->deleter(tensor); }
};
using TakenTensor = std::unique_ptr<unidle_dl_managed, TensorDeleter>;

/// The memory of a batch's fields, now the tensors', which give it back to the pool of `loader`. Throws std::bad_alloc
/// where there is no other memory for the batch, which then keeps its own.
std::vector<TakenTensor> take_fields(data::Batch& batch, std::span<const data::Field> fields,
                                     const data::Loader& loader, const std::shared_ptr<data::BufferPool>& pool);

/// Whether the memory of such a tensor is lent; it is the lender's again then.
bool take_back(unidle_dl_managed& tensor);

}  // namespace unidle::capi
