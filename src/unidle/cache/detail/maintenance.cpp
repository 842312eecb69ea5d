// The index, and what is done to the cache as a whole.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "unidle/base/error.h"
#include "unidle/cache/detail/state.h"

namespace unidle::cache::detail {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kRowsAtATime = 4096;

class RebuildLock {
 public:
  explicit RebuildLock(KeyLocks& locks) : locks_(locks), taken_(locks.wait_rebuild() == Outcome::kTaken) {}
  ~RebuildLock() {
    if (taken_) {
      locks_.unlock_rebuild();
    }
  }
  RebuildLock(const RebuildLock&) = delete;
  RebuildLock& operator=(const RebuildLock&) = delete;

 private:
  KeyLocks& locks_;
  bool taken_;
};

/// Out of the way, with what belongs to it. Whoever has it open notices that it was replaced.
void set_index_aside(const fs::path& folder) {
  std::error_code ignored;
  fs::rename(folder / "index.db", folder / "damaged" / "index.db", ignored);
  for (const char* name : {"index.db", "index.db-wal", "index.db-shm"}) {
    fs::remove(folder / name, ignored);
  }
}

}  // namespace

Index& State::index() {
  if (index_ && index_->replaced()) {
    index_.reset();
  }
  if (!index_) {
    const RebuildLock lock(*evictions_);
    const fs::path path = folder_ / "index.db";
    try {
      index_.emplace(path, *board_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCorrupt) {
        throw;
      }
      set_index_aside(folder_);
      index_.emplace(path, *board_);
    }
    if (!index_->complete()) {
      rebuild();
    }
  }
  return *index_;
}

void State::rebuild() {
  index_->rebuild([this](const auto& add) {
    for (std::size_t part = 0; part < BlobFiles::kParts; ++part) {
      files_.each(part, [&](const Key& key, std::uint64_t bytes) {
        add({key, bytes, files_.is_named(key)});
        return true;
      });
    }
  });
}

void State::with_index(const std::function<void(Index&)>& work) {
  constexpr int kMostLosses = 4;  // of one call: others may take the files away again and again
  const std::scoped_lock lock(mutex_);
  for (int losses = 0;; ++losses) {
    try {
      work(index());
      return;
    } catch (const Error& error) {
      // Of files that were taken away meanwhile any failure may come.
      const bool lost = error.code() == ErrorCode::kCorrupt || (index_ && (index_->damaged() || index_->replaced()));
      if (!lost || losses == kMostLosses) {
        throw;
      }
    }
    if (index_) {
      const RebuildLock rebuilding(*evictions_);
      if (!index_->replaced()) {  // else another process was faster
        set_index_aside(folder_);
      }
      index_.reset();
    }
  }
}

Statistics State::statistics() {
  if (!writable_) {
    return count_files();
  }
  Statistics all{.max_bytes = max_bytes_};
  try {
    with_index([&](Index& index) {
      const Totals totals = index.totals();
      all.entries = totals.entries;
      all.bytes = totals.bytes;
      all.named = totals.named;
    });
  } catch (const Error&) {  // a disk that is full has no room for an index
    all = count_files();
    if (all.entries == 0) {  // they may not be seen either
      throw;
    }
  }
  return all;
}

Statistics State::count_files() const {
  Statistics all{.max_bytes = max_bytes_};
  for (std::size_t part = 0; part < BlobFiles::kParts; ++part) {
    files_.each(part, [&](const Key& key, std::uint64_t bytes) {
      ++all.entries;
      all.bytes += bytes;
      all.named += files_.is_named(key) ? 1 : 0;
      return true;
    });
  }
  return all;
}

void State::drop_rows_without_blobs() {
  std::optional<Key> after;
  do {
    with_index([&](Index& index) {
      after = index.rows(after, kRowsAtATime, [&](const Key& key) {
        if (files_.exists(key) || evictions_->try_lock(key) == Outcome::kBusy) {
          return;  // with a lock: its blob is about to come
        }
        if (!files_.exists(key)) {
          index.forget(key);
        }
        evictions_->unlock(key);
      });
    });
  } while (after);
}

void State::adopt(std::vector<std::pair<Key, std::uint64_t>> blobs) {
  std::sort(blobs.begin(), blobs.end());  // as the index has them
  with_index([&](Index& index) {
    for (const auto& [key, bytes] : blobs) {
      // Looked for again: it may have been evicted since it was seen.
      if (!index.knows(key, bytes) && files_.exists(key)) {
        index.adopt({key, bytes, files_.is_named(key)});
      }
    }
  });
}

Verified State::verify(std::stop_token stop, const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  Verified all;
  std::mutex mutex;
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  using Blobs = std::vector<std::pair<Key, std::uint64_t>>;
  const auto look_at = [&](const Key& key, Blobs& good) {
    const OpenedBlob opened = files_.look_at(key);
    const bool damaged = opened.state == OpenedBlob::State::kDamaged || opened.state == OpenedBlob::State::kUnreadable;
    const bool moved = damaged && writable_ && files_.set_aside(key);
    if (opened.state == OpenedBlob::State::kGood) {
      good.emplace_back(key, opened.held->bytes);
    }
    if (opened.state == OpenedBlob::State::kMissing) {
      return !stop.stop_requested();
    }
    const std::scoped_lock lock(mutex);
    ++all.checked;
    all.bytes += opened.held ? opened.held->bytes : 0;
    all.damaged += damaged ? 1 : 0;
    all.set_aside += moved ? 1 : 0;
    if (progress) {
      progress(all.checked, all.bytes);
    }
    return !stop.stop_requested();
  };
  const auto work = [&] {
    try {
      for (std::size_t part = next++; part < BlobFiles::kParts && !stop.stop_requested(); part = next++) {
        Blobs good;
        files_.each(part, [&](const Key& key, std::uint64_t) { return look_at(key, good); });
        if (writable_) {
          adopt(std::move(good));
        }
      }
    } catch (...) {
      const std::scoped_lock lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < std::clamp(std::thread::hardware_concurrency(), 1U, 16U); ++i) {
      threads.emplace_back(work);
    }
    work();
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
  if (writable_ && !stop.stop_requested()) {
    drop_rows_without_blobs();
  }
  return all;
}

Pruned State::prune(std::optional<std::uint64_t> max_bytes) {
  if (!writable_) {
    throw Error(ErrorCode::kIo, options_.path.string(), "cannot be written", "check who may use the folder");
  }
  Pruned pruned;
  pruned.left_over = files_.sweep();
  pruned.damaged = files_.remove_damaged();
  for (std::size_t part = 0; part < BlobFiles::kParts; ++part) {
    std::vector<std::pair<Key, std::uint64_t>> blobs;
    files_.each(part, [&](const Key& key, std::uint64_t bytes) {
      blobs.emplace_back(key, bytes);
      return true;
    });
    adopt(std::move(blobs));
  }
  drop_rows_without_blobs();
  const std::optional<std::uint64_t> most = max_bytes ? max_bytes : max_bytes_;
  if (most) {
    hot_.release();
    with_index([&](Index& index) {
      const Totals gone = index.shrink(*most, [this](const Key& key) { return remove(key); });
      pruned.entries = gone.entries;
      pruned.bytes = gone.bytes;
    });
  }
  return pruned;
}

}  // namespace unidle::cache::detail
