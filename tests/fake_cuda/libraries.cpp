// Functions of cuBLAS and of the driver that PyTorch calls, for the same device. A product takes the time of its
// operations at the rate of its type; in float32 that rate depends on whether TF32 is allowed.
#include <algorithm>
#include <cstring>

#include "device.h"

using namespace fake;

namespace {

constexpr int kComputeTf32 = 77;  // CUBLAS_COMPUTE_32F_FAST_TF32
constexpr int kMathTf32 = 3;      // CUBLAS_TF32_TENSOR_OP_MATH
constexpr int kHalf = 2, kBfloat = 14;

struct Handle {
  void* stream = nullptr;
  int math = 0, pointers = 0;
};

struct Layout {  // of a matrix, and of a product
  int type = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int32_t batch = 1;
};

int product(void* stream, double operations, int type, bool tf32) {
  Machine& here = machine();
  std::unique_lock<std::mutex> held(here.lock);
  if (here.fault("cublas") != kSuccess) {
    return 13;  // CUBLAS_STATUS_EXECUTION_FAILED
  }
  const Speed& speed = here.speed;
  const double tflops = type == kHalf || type == kBfloat ? speed.half_tflops
                        : tf32                           ? speed.tf32_tflops
                                                         : speed.fp32_tflops;
  here.enqueue(held, *here.stream(stream), std::max(speed.kernel_us * 1e-6, operations / (tflops * 1e12)));
  return 0;
}

double operations(double m, double n, double k, double batch = 1) { return 2 * m * n * k * batch; }

}  // namespace

extern "C" {

int cublasCreate_v2(Handle** out) {
  *out = new Handle;
  return 0;
}
int cublasDestroy_v2(Handle*) { return 0; }
int cublasSetStream_v2(Handle* handle, void* stream) {
  handle->stream = stream;
  return 0;
}
int cublasSetWorkspace_v2(Handle*, void*, std::size_t) { return 0; }
int cublasSetMathMode(Handle* handle, int mode) {
  handle->math = mode;
  return 0;
}
int cublasGetMathMode(Handle* handle, int* mode) {
  *mode = handle->math;
  return 0;
}
int cublasSetPointerMode_v2(Handle* handle, int mode) {
  handle->pointers = mode;
  return 0;
}
int cublasGetPointerMode_v2(Handle* handle, int* mode) {
  *mode = handle->pointers;
  return 0;
}

int cublasSgemm_v2(Handle* handle, int, int, int m, int n, int k, const float*, const float*, int, const float*, int,
                   const float*, float*, int) {
  return product(handle->stream, operations(m, n, k), 0, handle->math == kMathTf32);
}

int cublasGemmEx(Handle* handle, int, int, int m, int n, int k, const void*, const void*, int type, int, const void*,
                 int, int, const void*, void*, int, int, int compute, int) {
  return product(handle->stream, operations(m, n, k), type, handle->math == kMathTf32 || compute == kComputeTf32);
}

int cublasSgemmStridedBatched(Handle* handle, int, int, int m, int n, int k, const float*, const float*, int, long long,
                              const float*, int, long long, const float*, float*, int, long long, int batch) {
  return product(handle->stream, operations(m, n, k, batch), 0, handle->math == kMathTf32);
}

int cublasGemmStridedBatchedEx(Handle* handle, int, int, int m, int n, int k, const void*, const void*, int type, int,
                               long long, const void*, int, int, long long, const void*, void*, int, int, long long,
                               int batch, int compute, int) {
  return product(handle->stream, operations(m, n, k, batch), type,
                 handle->math == kMathTf32 || compute == kComputeTf32);
}

int cublasSgemv_v2(Handle* handle, int, int m, int n, const float*, const float*, int, const float*, int, const float*,
                   float*, int) {
  return product(handle->stream, operations(m, n, 1), 0, false);
}

int cublasSdot_v2(Handle* handle, int n, const float*, int, const float*, int, float*) {
  return product(handle->stream, operations(n, 1, 1), 0, false);
}

// -- cublasLt: descriptors are our own --

int cublasLtMatmulDescCreate(Layout** out, int compute, int) {
  *out = new Layout;
  (*out)->type = compute;
  return 0;
}
int cublasLtMatmulDescDestroy(Layout* one) {
  delete one;
  return 0;
}
int cublasLtMatmulDescSetAttribute(Layout*, int, const void*, std::size_t) { return 0; }
int cublasLtMatrixLayoutCreate(Layout** out, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t) {
  *out = new Layout{type, rows, columns, 1};
  return 0;
}
int cublasLtMatrixLayoutDestroy(Layout* one) {
  delete one;
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(Layout* one, int attribute, const void* value, std::size_t size) {
  constexpr int kBatch = 5;  // CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT
  if (attribute == kBatch && size == sizeof one->batch) {
    std::memcpy(&one->batch, value, size);
  }
  return 0;
}
int cublasLtMatmulPreferenceCreate(Layout** out) {
  *out = new Layout;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(Layout* one) {
  delete one;
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(Layout*, int, const void*, std::size_t) { return 0; }

struct Heuristic {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int state;
  float waves;
  int rest[4];
};
int cublasLtMatmulAlgoGetHeuristic(void*, Layout*, Layout*, Layout*, Layout*, Layout*, Layout*, int, Heuristic* out,
                                   int* count) {
  std::memset(out, 0, sizeof *out);
  *count = 1;
  return 0;
}
int cublasLtMatmul(void*, const Layout* how, const void*, const void*, const Layout* a, const void*, const Layout* b,
                   const void*, const void*, const Layout*, void*, const Layout* d, const void*, void*, std::size_t,
                   void* stream) {
  // A is in its memory order, transposed or not: the other dimension is its size divided by the shared one.
  const double elements = double(a->rows) * double(a->columns) * double(b->rows) * double(b->columns);
  const double outer = double(d->rows) * double(d->columns);
  const double inner = outer > 0 ? elements / outer : 0;
  const double k = inner > 0 ? __builtin_sqrt(inner) : 0;
  return product(stream, operations(double(d->rows), double(d->columns), k, d->batch), a->type,
                 how->type == kComputeTf32);
}

// -- the driver functions that PyTorch calls --

int cuInit(unsigned) { return 0; }
int cuDeviceGet(int* out, int index) {
  *out = index;
  return 0;
}
int cuDeviceGetCount(int* out) {
  *out = static_cast<int>(machine().visible.size());
  return 0;
}
int cuDriverGetVersion(int* out) {
  *out = 13000;
  return 0;
}
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  *flags = 0;
  *active = machine().contexts[static_cast<std::size_t>(device)];
  return 0;
}
int cuDevicePrimaryCtxRetain(void** out, int device) {
  machine().use(device);
  *out = &machine();
  return 0;
}
int cuCtxGetCurrent(void** out) {
  *out = &machine();
  return 0;
}
int cuCtxSetCurrent(void*) { return 0; }
int cuGetErrorString(int, const char** out) {
  *out = "scripted error";
  return 0;
}
int cuPointerGetAttribute(void*, int, unsigned long long) { return 1; }

#define NOT_SUPPORTED(name) \
  int name() { return 801; }
NOT_SUPPORTED(cuDeviceGetAttribute)
NOT_SUPPORTED(cuFuncGetAttribute)
NOT_SUPPORTED(cuFuncSetAttribute)
NOT_SUPPORTED(cuFuncSetCacheConfig)
NOT_SUPPORTED(cuLaunchCooperativeKernel)
NOT_SUPPORTED(cuLaunchKernel)
NOT_SUPPORTED(cuLinkAddData_v2)
NOT_SUPPORTED(cuLinkComplete)
NOT_SUPPORTED(cuLinkCreate_v2)
NOT_SUPPORTED(cuModuleGetFunction)
NOT_SUPPORTED(cuModuleLoad)
NOT_SUPPORTED(cuModuleLoadData)
NOT_SUPPORTED(cuModuleLoadDataEx)
NOT_SUPPORTED(cuModuleUnload)
NOT_SUPPORTED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
NOT_SUPPORTED(cuTensorMapEncodeTiled)

}  // extern "C"
