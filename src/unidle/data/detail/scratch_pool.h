// Lends scratch objects to threads while they make an item.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace unidle::data::detail {

/// Idle scratch objects: as many as threads have ever worked concurrently. Thread-safe.
template <typename Scratch>
class ScratchPool {
 public:
  /// A scratch object for the lifetime of the lease.
  class Lease {
   public:
    explicit Lease(ScratchPool& pool) : pool_(pool) {
      {
        const std::lock_guard lock(pool.mutex_);
        if (!pool.idle_.empty()) {
          scratch_ = std::move(pool.idle_.back());
          pool.idle_.pop_back();
          return;
        }
      }
      scratch_ = std::make_unique<Scratch>();
    }
    ~Lease() {
      const std::lock_guard lock(pool_.mutex_);
      pool_.idle_.push_back(std::move(scratch_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Scratch* operator->() { return scratch_.get(); }
    Scratch& operator*() { return *scratch_; }

   private:
    ScratchPool& pool_;
    std::unique_ptr<Scratch> scratch_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> idle_;
};

}  // namespace unidle::data::detail
