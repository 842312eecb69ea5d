#include "unidle/logs/detail/read_ahead.h"

#include <algorithm>

namespace unidle::logs::detail {

namespace {
constexpr std::size_t kBlock = std::size_t{256} << 10U;  // two blocks stay in a core's cache
}  // namespace

ReadAhead::~ReadAhead() {
  if (thread_.joinable()) {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
}

void ReadAhead::fill(Block& block) noexcept {
  try {
    block.bytes.resize(room_ + kBlock);
    block.size = source_.read({block.bytes.data() + room_, kBlock});
  } catch (...) {
    block.size = 0;
    block.error = std::current_exception();
  }
}

void ReadAhead::run() {
  for (std::size_t i = 0;; i = 1 - i) {
    Block& block = blocks_[i];
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || !block.filled; });
      if (stop_) {
        return;
      }
    }
    fill(block);
    {
      const std::scoped_lock lock(mutex_);
      block.filled = true;
    }
    changed_.notify_all();
    if (block.size == 0) {
      return;
    }
  }
}

void ReadAhead::wait_for(Block& block) {
  // A pipe's length is not known in advance, and a read from it may block: such a thread could not be joined.
  const bool alone = source_.stored_bytes() <= kBlock;
  if (alone) {
    fill(block);
    return;
  }
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { run(); });
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return block.filled; });
}

bool ReadAhead::next(std::string_view& bytes) {
  Block& block = blocks_[at_];
  wait_for(block);
  if (block.error != nullptr) {
    std::rethrow_exception(block.error);
  }
  if (block.size == 0) {
    return false;
  }
  char* const begin = block.bytes.data() + room_ - bytes.size();
  std::copy(bytes.begin(), bytes.end(), begin);
  bytes = {begin, bytes.size() + block.size};
  at_ = 1 - at_;
  if (out_ != nullptr) {
    const std::scoped_lock lock(mutex_);
    out_->filled = false;
  }
  changed_.notify_all();
  out_ = &block;
  return true;
}

}  // namespace unidle::logs::detail
