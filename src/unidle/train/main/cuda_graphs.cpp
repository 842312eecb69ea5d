// Graphs of a CUDA device, in libunidle_cuda.so: that library has all of the engine that needs libtorch_cuda's own
// classes. It is loaded where there is a device, after libtorch_cuda, which is not linked.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <utility>
#include <vector>

#include "unidle/train/step/graph_capture.h"

namespace unidle::train {

namespace {

/// Torch's, with what capture_end() leaves out when the capture is broken.
class TorchGraph final : public at::cuda::CUDAGraph {
 public:
  /// The generator would go on to count its numbers for the graph, and refuse all others.
  void release_generators() {
    for (const auto& [state, increment] : captured_generator_states_) {
      state->capturing_ = false;
    }
  }
};

class CudaGraph final : public CapturedGraph {
 public:
  void record(c10::MempoolId_t pool, const std::function<void()>& work) {
    // Other threads (the loader's, which pin memory) go on meanwhile.
    graph_.capture_begin(pool, cudaStreamCaptureModeThreadLocal);
    work();
    graph_.capture_end();
  }
  /// After record() threw: the stream records no longer.
  void end_broken_capture() {
    try {
      graph_.capture_end();
    } catch (const std::exception&) {
      static_cast<void>(cudaGetLastError());  // that it was broken is known
    }
    graph_.release_generators();
  }
  void replay() override { graph_.replay(); }

 private:
  TorchGraph graph_;
};

class CudaGraphCapture final : public GraphCapture {
 public:
  /// The default stream cannot be recorded.
  explicit CudaGraphCapture(c10::DeviceIndex device)
      : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device)), pool_(at::cuda::graph_pool_handle()) {}

  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) override {
    auto graph = std::make_unique<CudaGraph>();
    try {
      graph->record(pool_, work);
    } catch (...) {
      graph->end_broken_capture();
      stop_allocating_from_pool();
      broken_.push_back(std::move(graph));
      throw;
    }
    return graph;
  }

 private:
  /// CUDAGraph::capture_end() leaves that out when the capture is broken.
  void stop_allocating_from_pool() {
    try {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(stream_.current_device().index(), pool_);
      at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(pool_);
    } catch (const std::exception&) {
      return;  // it was done already
    }
  }

  c10::cuda::CUDAStreamGuard stream_;
  c10::MempoolId_t pool_;                           // of all its graphs: one runs at a time
  std::vector<std::unique_ptr<CudaGraph>> broken_;  // torch may still ask them whose memory is whose
};

}  // namespace

}  // namespace unidle::train

extern "C" unidle::train::GraphCapture* unidle_graph_capture(int device) {
  return new unidle::train::CudaGraphCapture(static_cast<c10::DeviceIndex>(device));
}
