#include "unidle/trace/cupti/session.h"

#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <system_error>
#include <utility>

namespace unidle::trace::cupti {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20U;
constexpr std::chrono::seconds kFlushPeriod{1};
constexpr std::array<std::uint32_t, 3> kKinds = {kConcurrentKernel, kMemcpy, kMemset};

std::atomic<Session*> current{nullptr};
std::atomic<std::uint64_t> lost{0};
std::atomic<int> taking{0};  // threads that may use `current`

void nothing(void*, int, std::uint32_t, const void*) {}

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void* open_library(const std::string& name) {
  if (!name.empty()) {
    return ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  constexpr std::array<const char*, 4> kNames = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"};
  // Prefer the CUPTI that the process has already loaded, from any folder: two copies do not share a subscription.
  for (const int flags : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL}) {
    for (const char* one : kNames) {
      if (void* library = ::dlopen(one, flags)) {
        return library;
      }
    }
  }
  return nullptr;
}

template <typename Function>
void** place(Function*& function) {
  return reinterpret_cast<void**>(&function);
}

/// Returns the name of the first missing function; null when all are there.
const char* find_functions(void* library, Functions& f) {
  const std::array<std::pair<const char*, void**>, 9> needed = {{
      {"cuptiSubscribe", place(f.subscribe)},
      {"cuptiUnsubscribe", place(f.unsubscribe)},
      {"cuptiActivityRegisterCallbacks", place(f.register_callbacks)},
      {"cuptiActivityEnable", place(f.enable)},
      {"cuptiActivityDisable", place(f.disable)},
      {"cuptiActivityFlushAll", place(f.flush_all)},
      {"cuptiActivityGetNextRecord", place(f.next_record)},
      {"cuptiActivityGetNumDroppedRecords", place(f.dropped_records)},
      {"cuptiGetTimestamp", place(f.timestamp)},
  }};
  for (const auto& [name, into] : needed) {
    *into = ::dlsym(library, name);
    if (*into == nullptr) {
      return name;
    }
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Session> Session::start(const std::string& library, Aggregate& into, std::string& why) {
  void* handle = open_library(library);  // never closed: CUPTI's threads run on
  if (handle == nullptr) {
    why = "there is no CUPTI library";
    return nullptr;
  }
  Functions functions;
  if (const char* missing = find_functions(handle, functions)) {
    why = std::string("CUPTI lacks ") + missing;
    return nullptr;
  }
  std::unique_ptr<Session> session(new Session(functions, into));
  Session* none = nullptr;
  if (!current.compare_exchange_strong(none, session.get())) {
    why = "it is at work already";
    return nullptr;
  }
  why = session->open();
  return why.empty() ? std::move(session) : nullptr;
}

std::string Session::open() {
  if (const Result result = functions_.subscribe(&subscriber_, nothing, nullptr); result != kSuccess) {
    subscriber_ = nullptr;
    return "another tool holds CUPTI's subscription (error " + std::to_string(result) + ")";
  }
  if (!read_clocks()) {
    return "CUPTI has no clock";
  }
  if (const Result result = functions_.register_callbacks(requested, completed); result != kSuccess) {
    return "CUPTI takes no buffers (error " + std::to_string(result) + ")";
  }
  for (const std::uint32_t kind : kKinds) {
    if (const Result result = functions_.enable(kind); result != kSuccess) {
      return "CUPTI records no activity of kind " + std::to_string(kind) + " (error " + std::to_string(result) + ")";
    }
  }
  // This thread must not receive the program's signals.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    flusher_ = std::thread([this] { keep_flushing(); });
  } catch (const std::system_error&) {  // no more threads: full buffers arrive nevertheless
    flusher_ = {};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return "";
}

/// According to CUPTI's header, its timestamps are those of CLOCK_REALTIME.
bool Session::read_clocks() {
  std::uint64_t now = 0;
  if (functions_.timestamp(&now) != kSuccess) {
    return false;
  }
  shift_ns_ = monotonic_ns() - static_cast<std::int64_t>(now);
  return true;
}

/// According to CUPTI's header, a default flush "can be done at a regular interval in a separate thread"; it makes no
/// CUDA call that blocks.
void Session::keep_flushing() {
  std::unique_lock held(mutex_);
  while (!wake_.wait_for(held, kFlushPeriod, [this] { return ending_; })) {
    held.unlock();
    flush();
    held.lock();
  }
}

Session::~Session() {
  if (flusher_.joinable()) {
    {
      const std::lock_guard held(mutex_);
      ending_ = true;
    }
    wake_.notify_one();
    flusher_.join();
  }
  if (subscriber_ != nullptr) {
    for (const std::uint32_t kind : kKinds) {
      functions_.disable(kind);
    }
    functions_.flush_all(kForcedFlush);
    functions_.unsubscribe(subscriber_);
  }
  Session* self = this;
  if (current.compare_exchange_strong(self, nullptr)) {
    while (taking > 0) {  // a CUPTI thread may be delivering a buffer
      std::this_thread::yield();
    }
  }
}

void Session::flush() {
  read_clocks();
  functions_.flush_all(0);
}

std::uint64_t Session::dropped() { return lost; }

void Session::requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;
}

void Session::completed(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                        std::size_t valid_bytes) {
  ++taking;  // before reading `current`, so that whoever clears it sees us
  if (Session* session = current) {
    try {
      session->take(buffer, valid_bytes);
      std::size_t dropped = 0;
      if (session->functions_.dropped_records(context, stream, &dropped) == kSuccess) {
        lost += dropped;
      }
    } catch (...) {
      ++lost;  // out of memory: no exception may leave a C callback
    }
  }
  --taking;
  std::free(buffer);
}

void Session::take(std::uint8_t* buffer, std::size_t valid_bytes) {
  Record* record = nullptr;
  while (valid_bytes > 0 && functions_.next_record(buffer, valid_bytes, &record) == kSuccess && record != nullptr) {
    take(*record);
  }
}

void Session::take(const Record& record) {
  // Unsigned addition: a sum that overflows is not a valid time and is left out.
  const auto at = [&](std::uint64_t ns) {
    return ns == 0 ? 0 : static_cast<std::int64_t>(ns + static_cast<std::uint64_t>(shift_ns_));
  };
  if (record.kind == kConcurrentKernel) {
    const auto& kernel = reinterpret_cast<const KernelRecord&>(record);
    into_.kernel(kernel.device, at(kernel.start), at(kernel.end), kernel.name == nullptr ? "" : kernel.name);
  } else if (record.kind == kMemcpy) {
    const auto& copy = reinterpret_cast<const CopyRecord&>(record);
    into_.copy(copy.device, at(copy.start), at(copy.end), copy.bytes);
  } else if (record.kind == kMemset) {
    const auto& fill = reinterpret_cast<const FillRecord&>(record);
    into_.copy(fill.device, at(fill.start), at(fill.end), 0);
  }
}

}  // namespace unidle::trace::cupti
