#include "unidle/train/ranks/nccl.h"

#include "unidle/train/cuda_library.h"

namespace unidle::train {

c10::intrusive_ptr<c10d::Backend> nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int world,
                                               std::chrono::milliseconds timeout) {
  void* make = cuda_library_function("unidle_nccl_backend");
  return c10::intrusive_ptr<c10d::Backend>::reclaim(
      make != nullptr ? reinterpret_cast<MakeNcclBackend>(make)(store.get(), rank, world, timeout.count()) : nullptr);
}

}  // namespace unidle::train
