// CUDA graphs, in libunidle_cuda.so: that library has all parts of the engine that need libtorch_cuda's classes. It is
// loaded when there is a device, after libtorch_cuda; neither is linked.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>
#include <utility>

#include "unidle/train/step/graph_capture.h"

namespace unidle::train {

namespace {

/// Torch's graph, plus the clean-up that capture_end() and reset() omit when the capture failed.
class TorchGraph final : public at::cuda::CUDAGraph {
 public:
  /// After a failed capture: the stream no longer records, and the graph releases its pool.
  void abandon() {
    try {
      capture_end();
    } catch (const std::exception&) {
      static_cast<void>(cudaGetLastError());  // the failure is already known
    }
    for (const auto& [state, increment] : captured_generator_states_) {
      // Otherwise it keeps counting random numbers for the graph, and refuses all other captures.
      state->capturing_ = false;
    }
    if (!capture_ended_) {
      // Each capture holds the pool once; reset() releases it only if the capture counts as ended.
      capture_ended_ = ended_allocating();
    }
    reset();
  }

 private:
  /// Returns whether the pool was in use.
  bool ended_allocating() {
    try {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(capture_dev_, mempool_id_);
      at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(mempool_id_);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }
};

class CudaGraph final : public CapturedGraph {
 public:
  CudaGraph(std::shared_ptr<const c10::MempoolId_t> pool, const std::function<void()>& work) : pool_(std::move(pool)) {
    try {
      // Other threads (the loader's, which pin memory) continue meanwhile.
      graph_.capture_begin(*pool_, cudaStreamCaptureModeThreadLocal);
      work();
      graph_.capture_end();
    } catch (...) {
      graph_.abandon();
      throw;
    }
  }
  void replay() override { graph_.replay(); }

 private:
  std::shared_ptr<const c10::MempoolId_t> pool_;
  TorchGraph graph_;
};

class CudaGraphCapture final : public GraphCapture {
 public:
  /// The default stream cannot be captured, so this uses another one.
  explicit CudaGraphCapture(c10::DeviceIndex device)
      : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device)) {}

  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) override {
    free_cached_memory();
    return std::make_unique<CudaGraph>(pool(), work);
  }

 private:
  /// One pool for all live graphs: only one of them runs at a time. The allocator does not reuse a pool after its last
  /// graph is gone while some of its memory is in use.
  std::shared_ptr<const c10::MempoolId_t> pool() {
    auto pool = pool_.lock();
    if (pool == nullptr) {
      pool = std::make_shared<const c10::MempoolId_t>(at::cuda::graph_pool_handle());
      pool_ = pool;
    }
    return pool;
  }

  /// As torch.cuda.graph does: the graph's pool cannot use cached memory.
  void free_cached_memory() {
    c10::cuda::device_synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    at::getHostAllocator(at::kCUDA)->empty_cache();
  }

  c10::cuda::CUDAStreamGuard stream_;
  std::weak_ptr<const c10::MempoolId_t> pool_;
};

}  // namespace

}  // namespace unidle::train

extern "C" unidle::train::GraphCapture* unidle_graph_capture(int device) {
  return new unidle::train::CudaGraphCapture(static_cast<c10::DeviceIndex>(device));
}
