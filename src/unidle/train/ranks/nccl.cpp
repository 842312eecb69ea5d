#include "unidle/train/ranks/nccl.h"

#include <fmt/format.h>

#include <array>

#include "unidle/train/cuda_library.h"

namespace unidle::train {

c10::intrusive_ptr<c10d::Backend> nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int world,
                                               std::chrono::milliseconds timeout) {
  void* make = cuda_library_function("unidle_nccl_backend");
  return c10::intrusive_ptr<c10d::Backend>::reclaim(
      make != nullptr ? reinterpret_cast<MakeNcclBackend>(make)(store.get(), rank, world, timeout.count()) : nullptr);
}

std::string uuid_of(at::Device device) {
  void* ask = cuda_library_function("unidle_device_uuid");
  std::string digits;
  if (ask != nullptr) {
    std::array<unsigned char, 16> bytes{};
    reinterpret_cast<DeviceUuid>(ask)(device.index(), bytes.data());
    for (const unsigned char byte : bytes) {
      digits += fmt::format("{:02x}", byte);
    }
  }
  return digits;
}

}  // namespace unidle::train
