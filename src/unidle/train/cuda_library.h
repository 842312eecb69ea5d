// The engine's part that needs libtorch_cuda's own classes: libunidle_cuda.so, loaded where there is a CUDA device.
#pragma once

namespace unidle::train {

/// The function of that name in it, loaded for good. nullptr, with a warning, where it cannot be. After choose_device()
/// gave a CUDA device. One thread.
void* cuda_library_function(const char* name);

}  // namespace unidle::train
