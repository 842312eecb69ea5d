// The index, and operations on the whole cache.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <thread>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/cache/detail/state.h"

namespace unidle::cache::detail {

namespace fs = std::filesystem;

namespace {

// Progress is reported once for this many verified entries.
constexpr std::uint64_t kToldTogether = 64;
constexpr std::uint64_t kBytesToldTogether = 16 << 20;

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

/// Removes an index with its associated files; returns their number.
std::size_t remove_index(const fs::path& folder, const std::string& name) {
  std::size_t removed = 0;
  for (const char* end : {"", "-wal", "-shm"}) {
    std::error_code ignored;
    removed += fs::remove(folder / (name + end), ignored) ? 1 : 0;
  }
  return removed;
}

/// Moves the index away. Processes that have it open notice the replacement.
void set_index_aside(const fs::path& folder) {
  const std::string name = Index::file_name();
  std::error_code ignored;
  fs::rename(folder / name, folder / "damaged" / name, ignored);
  remove_index(folder, name);
}

}  // namespace

Index& State::index() {
  if (index_ && index_->replaced()) {
    index_.reset();
  }
  if (!index_) {
    const RebuildLock lock(*evictions_);
    const fs::path path = folder_ / Index::file_name();
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
      const BlobFolder folder(files_, part);
      std::vector<BlobFacts> blobs;
      for (const Key& key : folder.keys()) {
        if (const auto facts = folder.facts(key)) {
          blobs.push_back(*facts);
        }
      }
      // In the order of the index, so that each of its pages is written once.
      std::sort(blobs.begin(), blobs.end(), [](const auto& left, const auto& right) { return left.key < right.key; });
      std::for_each(blobs.begin(), blobs.end(), add);
    }
  });
}

void State::with_index(const std::function<void(Index&)>& work) {
  constexpr int kMostLosses = 4;  // per call: other processes may remove the files repeatedly
  const std::scoped_lock lock(mutex_);
  for (int losses = 0;; ++losses) {
    try {
      work(index());
      return;
    } catch (const Error& error) {
      // Files removed meanwhile can cause any failure.
      const bool lost = error.code() == ErrorCode::kCorrupt || (index_ && (index_->damaged() || index_->replaced()));
      if (!lost || losses == kMostLosses) {
        throw;
      }
    }
    if (index_) {
      const RebuildLock rebuilding(*evictions_);
      if (!index_->replaced()) {  // otherwise another process was faster
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
  } catch (const Error&) {  // a full disk has no room for an index
    all = count_files();
    if (all.entries == 0) {  // the entries may be unreadable, too
      throw;
    }
  }
  return all;
}

Statistics State::count_files() const {
  Statistics all{.max_bytes = max_bytes_};
  for (std::size_t part = 0; part < BlobFiles::kParts; ++part) {
    const BlobFolder folder(files_, part);
    for (const Key& key : folder.keys()) {
      if (const auto facts = folder.facts(key)) {
        ++all.entries;
        all.bytes += facts->bytes;
        all.named += facts->named ? 1 : 0;
      }
    }
  }
  return all;
}

void State::repair_rows(std::size_t part, const BlobFolder& folder, Sizes seen) {
  std::sort(seen.begin(), seen.end());  // in the order of the index
  with_index([&](Index& index) {
    const Sizes rows = index.rows(part);
    Sizes unseen;  // rows that may lack their blob
    Sizes unknown;
    std::set_difference(rows.begin(), rows.end(), seen.begin(), seen.end(), std::back_inserter(unseen));
    std::set_difference(seen.begin(), seen.end(), rows.begin(), rows.end(), std::back_inserter(unknown));
    for (const auto& [key, bytes] : unseen) {
      if (files_.exists(key) || evictions_->try_lock(key) == Outcome::kBusy) {
        continue;  // the claim shows that its blob is about to be stored
      }
      if (!files_.exists(key)) {
        index.forget(key);
      }
      evictions_->unlock(key);
    }
    for (const auto& [key, bytes] : unknown) {
      if (const auto facts = folder.facts(key)) {  // otherwise it was evicted meanwhile
        index.adopt(*facts);
      }
    }
  });
}

Verified State::verify(std::stop_token stop, const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  Verified all;
  std::mutex mutex;
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  const auto tell = [&](const Verified& some) {
    const std::scoped_lock lock(mutex);
    all.checked += some.checked;
    all.bytes += some.bytes;
    all.damaged += some.damaged;
    all.set_aside += some.set_aside;
    if (progress && some.checked > 0) {
      progress(all.checked, all.bytes);
    }
  };
  const auto note = [&](const Key& key, const CheckedBlob& blob, Sizes& good, Verified& some) {
    using BlobIs = OpenedBlob::State;
    if (blob.state == BlobIs::kGood) {
      good.emplace_back(key, blob.bytes);
    }
    const bool damaged = blob.state == BlobIs::kDamaged || blob.state == BlobIs::kUnreadable;
    some.checked += blob.state == BlobIs::kMissing ? 0 : 1;
    some.bytes += blob.bytes;
    some.damaged += damaged ? 1 : 0;
    some.set_aside += damaged && writable_ && files_.set_aside(key) ? 1 : 0;
  };
  const auto check_part = [&](std::size_t part, std::vector<std::byte>& buffer) {
    const BlobFolder folder(files_, part);
    Sizes good;
    Verified some;
    for (const Key& key : folder.keys()) {
      if (stop.stop_requested()) {
        tell(some);
        return;
      }
      note(key, folder.check(key, buffer), good, some);
      if (some.checked >= kToldTogether || some.bytes >= kBytesToldTogether) {
        tell(std::exchange(some, {}));
      }
    }
    tell(some);
    if (writable_) {
      repair_rows(part, folder, std::move(good));
    }
  };
  const auto work = [&] {
    std::vector<std::byte> buffer;
    try {
      for (std::size_t part = next++; part < BlobFiles::kParts && !stop.stop_requested(); part = next++) {
        check_part(part, buffer);
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
  return all;
}

Pruned State::prune(std::optional<std::uint64_t> max_bytes) {
  if (!writable_) {
    throw Error(ErrorCode::kIo, options_.path.string(), "cannot be written", "check who may use the folder");
  }
  Pruned pruned;
  pruned.left_over = files_.sweep();
  for (const std::string& name : Index::earlier_file_names()) {
    pruned.left_over += remove_index(folder_, name);
  }
  pruned.damaged = files_.remove_damaged();
  for (std::size_t part = 0; part < BlobFiles::kParts; ++part) {
    const BlobFolder folder(files_, part);
    Sizes seen;
    for (const Key& key : folder.keys()) {
      if (const auto bytes = folder.bytes(key)) {
        seen.emplace_back(key, *bytes);
      }
    }
    repair_rows(part, folder, std::move(seen));
  }
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
