#include "device.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace fake {

thread_local int current_device = 0;
thread_local int capture_mode = 0;

namespace {

Speed read_speed() {
  Speed speed;
  const char* text = std::getenv("UNIDLE_FAKE_CUDA");
  std::istringstream words(text != nullptr ? text : "");
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const double value = equals == std::string::npos ? 0 : std::strtod(word.c_str() + equals + 1, nullptr);
    const std::pair<const char*, double*> numbers[] = {
        {"kernel_us", &speed.kernel_us},       {"memory_gbs", &speed.memory_gbs},   {"fp32_tflops", &speed.fp32_tflops},
        {"tf32_tflops", &speed.tf32_tflops},   {"half_tflops", &speed.half_tflops}, {"pinned_gbs", &speed.pinned_gbs},
        {"pageable_gbs", &speed.pageable_gbs}, {"total_gb", &speed.total_gb},
    };
    for (const auto& [known, place] : numbers) {
      if (name == known) {
        *place = value;
      }
    }
    if (name == "devices") {
      speed.devices = static_cast<int>(value);
    }
    if (name == "most_queued") {
      speed.most_queued = static_cast<std::size_t>(value);
    }
  }
  return speed;
}

/// Reads CUDA_VISIBLE_DEVICES like the driver: indices or prefixes of UUIDs, up to the first invalid one. A MIG slice
/// belongs to the first device, and is the only one.
std::vector<int> read_visible(int devices) {
  std::vector<int> all;
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text == nullptr) {
    for (int index = 0; index < devices; ++index) {
      all.push_back(index);
    }
    return all;
  }
  if (std::strncmp(text, "MIG-", 4) == 0) {
    return {0};
  }
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    int found = -1;
    for (int index = 0; index < devices; ++index) {
      if (word == std::to_string(index) || (word.size() > 4 && uuid(index).compare(0, word.size(), word) == 0)) {
        found = index;
      }
    }
    if (found < 0) {
      break;
    }
    all.push_back(found);
  }
  return all;
}

}  // namespace

std::string uuid(int index) {
  char text[64];
  std::snprintf(text, sizeof text, "GPU-%08x-0000-4000-8000-000000000000", static_cast<unsigned>(index + 1));
  return text;
}

Machine& machine() {
  static auto* the = new Machine;  // never destroyed: calls come until the very end
  return *the;
}

Machine::Machine() : speed(read_speed()), visible(read_visible(speed.devices)), process_(getpid()) {
  contexts.assign(visible.size(), 0);
  if (const char* path = std::getenv("UNIDLE_FAKE_CUDA_LOG")) {
    log_ = path;
  }
  const char* path = std::getenv("UNIDLE_FAKE_CUDA_BUSY");
  const int file = path != nullptr ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (file >= 0) {
    const std::size_t size = sizeof(Busy) * static_cast<std::size_t>(speed.devices);
    if (ftruncate(file, static_cast<off_t>(size)) == 0) {
      void* there = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      busy_ = there == MAP_FAILED ? nullptr : static_cast<Busy*>(there);
    }
    close(file);
  }
}

std::int64_t Machine::now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

void Machine::say(const std::string& line) const {
  const int file = log_.empty() ? -1 : open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file >= 0) {
    const std::string whole = line + "\n";
    [[maybe_unused]] const auto written = write(file, whole.data(), whole.size());
    close(file);
  }
}

int Machine::fault(const char* call) {
  if (getpid() != process_ && std::count(contexts.begin(), contexts.end(), 1) > 0) {
    say(std::string("forked: ") + call);
    return kInitialization;
  }
  return visible.empty() ? kNoDevice : kSuccess;
}

int Machine::unsafe(const char* call, const Stream* stream) {
  const bool of_stream = stream != nullptr && stream->capture != nullptr;
  const bool global = std::any_of(capturing.begin(), capturing.end(), [](const Graph* one) { return one->global; });
  if (!of_stream && (!global || capture_mode == 2)) {
    return kSuccess;
  }
  say(std::string("captured: ") + call);
  for (Graph* one : capturing) {
    one->invalid = true;
  }
  return kCaptureUnsupported;
}

void Machine::use(int device) {
  if (contexts[static_cast<std::size_t>(device)] == 0) {
    contexts[static_cast<std::size_t>(device)] = 1;
    say("context: " + std::to_string(device));
  }
}

Stream* Machine::stream(void* handle) {
  if (reinterpret_cast<std::uintptr_t>(handle) > 2) {
    return static_cast<Stream*>(handle);
  }
  Stream& found = default_streams[current_device];
  found.device = current_device;
  return &found;
}

std::int64_t Machine::enqueue(std::unique_lock<std::mutex>& held, Stream& stream, double seconds, std::size_t kernels) {
  const auto cost_ns = static_cast<std::int64_t>(seconds * 1e9);
  if (stream.capture != nullptr) {
    stream.capture->cost_ns += cost_ns;
    stream.capture->kernels += kernels;
    return 0;
  }
  use(stream.device);
  settle(now());
  auto& pending = stream.pending;
  while (!pending.empty() && (pending.front() <= now() || pending.size() >= speed.most_queued)) {
    const std::int64_t until = pending.front();
    if (until > now()) {
      wait(held, until);
    }
    if (!pending.empty() && pending.front() <= until) {
      pending.pop_front();
    }
  }
  const std::int64_t begin = std::max(now(), stream.end_ns);
  stream.end_ns = begin + cost_ns;
  pending.push_back(stream.end_ns);
  if (busy_ != nullptr && kernels > 0) {
    Busy& busy = busy_[visible[static_cast<std::size_t>(stream.device)]];
    const std::int64_t last = busy.end_ns;  // overlapping work of two streams counts once
    busy.queued_ns += std::max<std::int64_t>(0, stream.end_ns - std::max(begin, last));
    busy.end_ns = std::max(last, stream.end_ns);
  }
  return stream.end_ns;
}

void Machine::update(Stream& stream, float* weights) {
  if (stream.capture != nullptr) {
    stream.capture->updated.push_back(weights);
  } else {
    *weights += 0.125F;
  }
}

void Machine::settle(std::int64_t now_ns) {
  while (!copies.empty() && copies.front().at_ns <= now_ns) {
    std::memcpy(copies.front().to, copies.front().from, copies.front().bytes);
    copies.pop_front();
  }
}

void Machine::wait(std::unique_lock<std::mutex>& held, std::int64_t until_ns) {
  held.unlock();
  const timespec until{until_ns / 1'000'000'000, until_ns % 1'000'000'000};
  while (now() < until_ns) {
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  held.lock();
  settle(now());
}

}  // namespace fake
