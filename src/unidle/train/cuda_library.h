// The part of the engine that needs libtorch_cuda's classes: libunidle_cuda.so, loaded when there is a CUDA device.
#pragma once

namespace unidle::train {

/// The library's function of that name; the library is never unloaded. Returns nullptr, with a warning, when it is not
/// available. Call after choose_device() returned a CUDA device, from one thread.
void* cuda_library_function(const char* name);

}  // namespace unidle::train
