// Collective calls between GPUs over NCCL, which is part of libtorch_cuda.
#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace unidle::train {

/// Connects when the first call is made. Where a peer is lost or a call takes longer than `timeout`, calls throw.
/// nullptr, with a warning, where it cannot be had. Throws what torch throws.
c10::intrusive_ptr<c10d::Backend> nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int world,
                                               std::chrono::milliseconds timeout);

/// What libunidle_cuda.so has under the name unidle_nccl_backend. The caller owns what it returns.
using MakeNcclBackend = c10d::Backend* (*)(c10d::Store* store, int rank, int world, std::int64_t timeout_ms);

}  // namespace unidle::train
