// The processes' connection over NCCL, in libunidle_cuda.so.
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <cstdlib>

#include "unidle/train/ranks/nccl.h"

extern "C" c10d::Backend* unidle_nccl_backend(c10d::Store* store, int rank, int world, std::int64_t timeout_ms) {
  // A time-out or a lost process ends what waits for it with an exception, not this process with a signal. torchrun
  // sets another value for everybody.
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", std::to_string(c10d::CleanUpOnly).c_str(), /*overwrite=*/1);
  auto options = c10d::ProcessGroupNCCL::Options::create(/*is_high_priority_stream=*/true);
  options->timeout = std::chrono::milliseconds(timeout_ms);
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::intrusive_ptr<c10d::Store>::reclaim_copy(store), rank, world,
                                                     std::move(options))
      .release();
}
