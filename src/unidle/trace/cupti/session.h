// Collects the activity records of this process from CUPTI.
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

/// Holds CUPTI's only subscription, so that other tools see that it is taken. One per process: CUPTI's buffer callbacks
/// carry no user pointer. CUPTI's own thread delivers full buffers only; a thread of ours flushes the others each
/// second. Nothing in the program waits for either.
class Session {
 public:
  /// Loads `library`, or, when it is empty, the CUPTI that the process has loaded or the system's. Returns null, with
  /// the reason in `why`, when there is none, a function is missing, or another tool holds the subscription. `into`
  /// must outlive the session.
  static std::unique_ptr<Session> start(const std::string& library, Aggregate& into, std::string& why);
  /// Takes the remaining records and releases the subscription.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Has CUPTI deliver its buffers, except those with an unfinished activity. Reads the clocks again: CUPTI's is the
  /// wall clock, which may be set.
  void flush();
  /// Number of records of this process that CUPTI dropped for lack of buffer space, so far.
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
