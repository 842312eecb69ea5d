#include "unidle/base/abandonable_thread.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "unidle/base/signals_blocked.h"

namespace unidle {

namespace {

std::atomic<int> left_behind{0};

}  // namespace

struct AbandonableThread::State {
  std::function<void(std::stop_token)> work;
  std::stop_source stop;
  std::mutex mutex;
  std::condition_variable changed;
  bool returned = false;
  bool left = false;

  void run() {
    try {
      work(stop.get_token());
    } catch (...) {  // NOLINT(bugprone-empty-catch): `work` reports its own errors
    }
    work = nullptr;
    const std::lock_guard lock(mutex);
    returned = true;
    left_behind -= left ? 1 : 0;
    changed.notify_all();
  }
};

AbandonableThread::AbandonableThread(std::function<void(std::stop_token)> work) : state_(std::make_shared<State>()) {
  state_->work = std::move(work);
  const SignalsBlocked blocked;
  std::thread([state = state_] { state->run(); }).detach();
}

AbandonableThread::~AbandonableThread() { end(0); }

bool AbandonableThread::end(std::int64_t patience_ns) {
  state_->stop.request_stop();
  std::unique_lock lock(state_->mutex);
  const auto returned = [this] { return state_->returned; };
  if (patience_ns < 0) {
    state_->changed.wait(lock, returned);
  } else if (!state_->changed.wait_for(lock, std::chrono::nanoseconds(patience_ns), returned) && !state_->left) {
    state_->left = true;
    ++left_behind;
  }
  return state_->returned;
}

bool has_abandoned_threads() { return left_behind > 0; }

void end_at_once(int code) {
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace unidle
