// A CUDA device that computes nothing and keeps time: the basis of the fake runtime's streams, events and graphs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace fake {

// Values of cudaError_t.
enum Error : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInitialization = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidHandle = 400,
  kNotReady = 600,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
};

struct Graph {
  std::int64_t cost_ns = 0;
  std::size_t kernels = 0;
  bool invalid = false;
  bool global = false;  // no thread may make an unsafe call
  std::vector<float*> updated;
};

struct Stream {
  int device = 0;                    // by the process's numbering
  std::int64_t end_ns = 0;           // when all queued work is done
  std::deque<std::int64_t> pending;  // ends of queued work
  Graph* capture = nullptr;
};

struct Event {
  int device = 0;
  bool timing = true;
  bool recorded = false;
  std::int64_t at_ns = 0;
  Graph* capture = nullptr;
};

/// A copy from or to pinned memory reads its source when it ends: the latest moment allowed on the real device.
struct Copy {
  std::int64_t at_ns;
  void* to;
  const void* from;
  std::size_t bytes;
};

/// Times and sizes of the device, from $UNIDLE_FAKE_CUDA: words NAME=NUMBER.
struct Speed {
  int devices = 1;
  double kernel_us = 4;            // the shortest kernel
  double memory_gbs = 2000;        // of kernels that are not products
  double fp32_tflops = 50;         // products of float32
  double tf32_tflops = 400;        // the same in TF32
  double half_tflops = 800;        // products of 16 bits
  double pinned_gbs = 25;          // copies
  double pageable_gbs = 5;         //
  double total_gb = 80;            // of memory
  std::size_t most_queued = 1024;  // launches; the next one waits
};

/// All devices of this process. Every member except `now` requires `lock` to be held.
class Machine {
 public:
  Machine();

  static std::int64_t now();

  /// The error that every call returns in this process: it was forked, or there is no device.
  int fault(const char* call);
  /// Called for calls that may break a capture: an error if something is being captured. `stream`: the call waits for
  /// it.
  int unsafe(const char* call, const Stream* stream = nullptr);

  void use(int device);  // makes its context
  Stream* stream(void* handle);
  /// Queues work of that duration. Returns when it will be done. Waits without the lock if the queue is full.
  std::int64_t enqueue(std::unique_lock<std::mutex>& held, Stream& stream, double seconds, std::size_t kernels = 1);
  /// A fused update: the first weight changes, so that a step is distinguishable from none.
  void update(Stream& stream, float* weights);
  void settle(std::int64_t now_ns);  // makes the copies that are due
  void wait(std::unique_lock<std::mutex>& held, std::int64_t until_ns);
  void say(const std::string& line) const;

  std::mutex lock;
  Speed speed;
  std::vector<int> visible;  // indices on the machine
  std::vector<char> contexts;
  std::map<int, Stream> default_streams;
  std::map<const char*, std::pair<std::size_t, bool>> memory;  // begin -> size, on the device
  std::vector<Graph*> capturing;
  std::deque<Copy> copies;
  std::int64_t used_bytes = 0;

 private:
  struct Busy {
    std::atomic<std::int64_t> queued_ns, end_ns;
  };

  int process_;
  bool forked_told_ = false;
  std::string log_;
  Busy* busy_ = nullptr;  // by index on the machine
};

Machine& machine();

/// The current device of this thread.
extern thread_local int current_device;
/// cudaStreamCaptureMode of this thread: 0 global, 1 thread-local, 2 relaxed.
extern thread_local int capture_mode;

/// "GPU-0000000I-..." of the device with this index on the machine.
std::string uuid(int index);

}  // namespace fake
