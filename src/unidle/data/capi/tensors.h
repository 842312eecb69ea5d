// Converts between DLPack tensors and the memory of the data pipeline.
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

/// Views the contents of a caller's tensor. Throws kUsage when it is not in host memory or its type is not a field
/// type.
data::ArrayView view_of(const unidle_dl_tensor& tensor);

struct TensorDeleter {
  void operator()(unidle_dl_managed* tensor) const { tensor->deleter(tensor); }
};
using TakenTensor = std::unique_ptr<unidle_dl_managed, TensorDeleter>;

/// Transfers the memory of a batch's fields to tensors, which return it to the pool of `loader`. Throws std::bad_alloc
/// when the batch cannot get replacement memory; the batch is then unchanged.
std::vector<TakenTensor> take_fields(data::Batch& batch, std::span<const data::Field> fields,
                                     const data::Loader& loader, const std::shared_ptr<data::BufferPool>& pool);

/// Returns true when the tensor's memory is lent; it is then the lender's again.
bool take_back(unidle_dl_managed& tensor);

}  // namespace unidle::capi
