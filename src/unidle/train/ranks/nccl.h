// Collective operations between GPUs over NCCL, which is part of libtorch_cuda.
#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace unidle::train {

/// Connects on the first call. Calls throw when a peer is lost or a call exceeds `timeout`. Returns nullptr, with a
/// warning, when NCCL is not available. Throws what torch throws.
c10::intrusive_ptr<c10d::Backend> nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int world,
                                               std::chrono::milliseconds timeout);

/// Type of unidle_nccl_backend in libunidle_cuda.so. The caller owns the result.
using MakeNcclBackend = c10d::Backend* (*)(c10d::Store* store, int rank, int world, std::int64_t timeout_ms);

}  // namespace unidle::train
