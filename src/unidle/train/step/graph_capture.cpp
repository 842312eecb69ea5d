#include "unidle/train/step/graph_capture.h"

#include "unidle/train/cuda_library.h"

namespace unidle::train {

std::unique_ptr<GraphCapture> graph_capture_of(at::Device device) {
  void* make = device.is_cuda() ? cuda_library_function("unidle_graph_capture") : nullptr;
  return std::unique_ptr<GraphCapture>(make != nullptr ? reinterpret_cast<MakeGraphCapture>(make)(device.index())
                                                       : nullptr);
}

}  // namespace unidle::train
