// An NVML of an old driver: only the required symbols under their first names, and the first list of processes.
#include <cstddef>

namespace {

struct Process {
  unsigned pid;
  unsigned long long used;
};

}  // namespace

extern "C" {

int nvmlInit() { return 0; }

int nvmlDeviceGetCount(unsigned* count) {
  *count = 1;
  return 0;
}

int nvmlDeviceGetHandleByIndex(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(std::size_t{index} + 1);
  return 0;
}

int nvmlDeviceGetComputeRunningProcesses(void* /*device*/, unsigned* count, Process* processes) {
  *count = 2;
  processes[0] = {41, 1000};
  processes[1] = {42, 2000};
  return 0;
}

}  // extern "C"
