// Calls about captured graphs.
#include <algorithm>

#include "calls.h"

using namespace fake;

extern "C" {

int cudaThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return kSuccess;
}

int cudaStreamBeginCapture(void* handle, int mode) {
  Called call("cudaStreamBeginCapture");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  auto* graph = new Graph;
  graph->global = mode == 0;
  here.stream(handle)->capture = graph;
  here.capturing.push_back(graph);
  return kSuccess;
}

int cudaStreamEndCapture(void* handle, Graph** out) {
  Called call("cudaStreamEndCapture");
  Machine& here = machine();
  Graph* graph = std::exchange(here.stream(handle)->capture, nullptr);
  *out = graph;
  if (call.error != 0 || graph == nullptr) {
    return failed(kInvalidValue);
  }
  here.capturing.erase(std::remove(here.capturing.begin(), here.capturing.end(), graph), here.capturing.end());
  return graph->invalid ? failed(kCaptureInvalidated) : kSuccess;
}

int cudaStreamIsCapturing(void* handle, int* status) {
  std::lock_guard<std::mutex> held(machine().lock);
  const Graph* graph = machine().stream(handle)->capture;
  *status = graph == nullptr ? 0 : graph->invalid ? 2 : 1;
  return kSuccess;
}

int cudaStreamGetCaptureInfo(void* handle, int* status, unsigned long long* id, void** graph, const void*** nodes,
                             const void** edges, std::size_t* count) {
  cudaStreamIsCapturing(handle, status);
  Graph* captured = machine().stream(handle)->capture;
  if (id != nullptr) {
    *id = reinterpret_cast<std::uintptr_t>(captured);
  }
  if (graph != nullptr) {
    *graph = captured;
  }
  if (nodes != nullptr) {
    *nodes = nullptr;
  }
  if (edges != nullptr) {
    *edges = nullptr;
  }
  if (count != nullptr) {
    *count = 0;
  }
  return kSuccess;
}

int cudaGraphGetNodes(const Graph* graph, void** nodes, std::size_t* count) {
  if (nodes == nullptr) {
    *count = graph->kernels;
  }
  return kSuccess;
}

int cudaGraphInstantiateWithFlags(Graph** out, Graph* graph, unsigned long long) {
  *out = new Graph(*graph);
  return kSuccess;
}

int cudaGraphLaunch(const Graph* graph, void* handle) {
  Called call("cudaGraphLaunch");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  for (float* weights : graph->updated) {
    here.update(*here.stream(handle), weights);
  }
  here.enqueue(call.held, *here.stream(handle), static_cast<double>(graph->cost_ns) * 1e-9);
  return kSuccess;
}

int cudaGraphDestroy(Graph*) { return kSuccess; }
int cudaGraphExecDestroy(Graph*) { return kSuccess; }

}  // extern "C"
