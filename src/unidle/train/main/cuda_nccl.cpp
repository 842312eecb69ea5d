// Connects the processes over NCCL; part of libunidle_cuda.so.
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <cstdlib>

#include "unidle/train/ranks/nccl.h"

extern "C" c10d::Backend* unidle_nccl_backend(c10d::Store* store, int rank, int world, std::int64_t timeout_ms) {
  // On a time-out or a lost process, waiting calls throw instead of aborting this process. torchrun sets another value
  // for all processes.
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", std::to_string(c10d::CleanUpOnly).c_str(), /*overwrite=*/1);
  auto options = c10d::ProcessGroupNCCL::Options::create(/*is_high_priority_stream=*/true);
  options->timeout = std::chrono::milliseconds(timeout_ms);
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::intrusive_ptr<c10d::Store>::reclaim_copy(store), rank, world,
                                                     std::move(options))
      .release();
}
