// Activity records of this process, from CUPTI.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "unidle/trace/cupti/abi.h"
#include "unidle/trace/cupti/aggregate.h"

namespace unidle::trace::cupti {

/// Holds CUPTI's only subscription, so that others see that it is taken. One at a time in a process: CUPTI's buffer
/// callbacks carry no pointer of ours. Buffers are handed over by CUPTI's own thread, and by one of ours each second:
/// by itself CUPTI hands over full ones alone. Nothing waits for them.
class Session {
 public:
  /// Loads `library`, or, when it is empty, the CUPTI that the process has or the system's. Null, with the reason in
  /// `why`, when there is none, it lacks a function, or somebody else holds the subscription. `into` must outlive it.
  static std::unique_ptr<Session> start(const std::string& library, Aggregate& into, std::string& why);
  /// Takes what CUPTI still has and lets go of it.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Hands over what CUPTI holds, but for buffers in which something has not ended. Reads the clocks anew: CUPTI's is
  /// that of the day, which may be set.
  void flush();
  /// Records of this process that CUPTI had no room for, so far.
  static std::uint64_t dropped();

 private:
  Session(Functions functions, Aggregate& into) : functions_(functions), into_(into) {}
  std::string open();
  bool read_clocks();
  void keep_flushing();
  static void requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records);
  static void completed(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                        std::size_t valid_bytes);
  void take(std::uint8_t* buffer, std::size_t valid_bytes);
  void take(const Record& record);

  Functions functions_;
  Aggregate& into_;
  void* subscriber_ = nullptr;
  std::thread flusher_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;                     // under mutex_
  std::atomic<std::int64_t> shift_ns_ = 0;  // from CUPTI's clock to CLOCK_MONOTONIC
};

}  // namespace unidle::trace::cupti
