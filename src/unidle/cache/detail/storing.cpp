// How entries get into the cache: many at a time, with one wait for the disk.
#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/error.h"
#include "unidle/cache/detail/state.h"

namespace unidle::cache::detail {

namespace {

constexpr std::int64_t kRetry_ns = 10 * kNsPerSecond;
constexpr std::uint64_t kMostBytesTogether = 32 << 20;
/// Of the bound: what is stored together must not be so much that it pushes itself out of the small queue.
constexpr std::uint64_t kShareTogether = 20;

}  // namespace

/// Entries whose blobs lie in tmp/.
class State::Group {
 public:
  explicit Group(std::optional<std::uint64_t> max_bytes)
      : most_bytes_(max_bytes ? std::min(kMostBytesTogether, *max_bytes / kShareTogether) : kMostBytesTogether) {}

  bool has_room(std::uint64_t bytes) const {
    return entries.empty() || (entries.size() < kMostTogether && bytes_ + bytes <= most_bytes_);
  }
  void add(Incoming& entry, TemporaryBlob temporary) {
    entries.push_back(&entry);
    temporaries.push_back(std::move(temporary));
    rows.push_back({entry.key, entry.blob.bytes});
    bytes_ += entry.blob.bytes;
  }

  std::vector<Incoming*> entries;
  std::vector<TemporaryBlob> temporaries;
  std::vector<Wanted> rows;

 private:
  std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0;
};

/// How many of the entries were looked at: those that are too large are left out of the group.
std::size_t State::write(std::span<Incoming> entries, Group& group) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Incoming& entry = entries[i];
    if (max_bytes_ && entry.blob.bytes > *max_bytes_) {
      tell_once("large", fmt::format("an entry of {} bytes is not stored: the cache may hold {}", entry.blob.bytes,
                                     *max_bytes_));
      continue;
    }
    if (!group.has_room(entry.blob.bytes)) {
      return i;
    }
    try {
      group.add(entry, files_.write(entry.key, entry.blob));
    } catch (const Error&) {
      if (group.entries.empty()) {
        throw;
      }
      return i;  // it may do once the others have given back their open files and their room
    }
  }
  return entries.size();
}

void State::make_room(std::span<Wanted> blobs) {
  const auto add = [&](Index& index, std::span<Wanted> some) {
    index.add(some, max_bytes_, [this](const Key& other) { return remove(other); });
  };
  with_index([&](Index& index) { add(index, blobs); });
  const auto refused = [](const Wanted& blob) { return !blob.fits; };
  if (std::any_of(blobs.begin(), blobs.end(), refused)) {
    hot_.release();  // what stood in the way may have been our own
    for (Wanted& blob : blobs) {
      if (refused(blob)) {
        with_index([&](Index& index) { add(index, {&blob, 1}); });
      }
    }
  }
  if (std::any_of(blobs.begin(), blobs.end(), refused)) {
    tell_once("held", "the cache is full of entries that are being read; what is new is not stored");
  }
}

void State::publish(Group& group) {
  std::vector<Key> named;
  int failure = 0;
  for (std::size_t i = 0; i < group.entries.size() && failure == 0; ++i) {
    if (group.rows[i].fits) {
      failure = files_.publish(group.temporaries[i], group.rows[i].key);
    }
    if (group.rows[i].fits && failure == 0) {
      board_->bump_generation(group.rows[i].key);
      named.push_back(group.rows[i].key);
      group.entries[i]->stored = true;
    }
  }
  if (options_.durability == Durability::kPower) {
    files_.sync_names(named);
  }
  if (failure != 0) {
    throw system_error(ErrorCode::kIo, folder_.string(), "cannot be written", failure);
  }
}

std::size_t State::store(std::span<Incoming> entries) {
  if (!writable_ || clock_.now_ns() < retry_ns_) {
    return entries.size();
  }
  try {
    with_index([](Index&) {});  // opened before the blobs take the last descriptors
    Group group(max_bytes_);
    const std::size_t taken = write(entries, group);
    if (options_.durability == Durability::kPower) {
      files_.sync(group.temporaries);
    }
    if (!group.entries.empty()) {
      make_room(group.rows);
      publish(group);
    }
    return taken;
  } catch (const Error& error) {
    retry_ns_ = clock_.now_ns() + kRetry_ns;
    tell_once("write", fmt::format("the cache goes on without storing: {}", error.what()));
    return entries.size();
  }
}

}  // namespace unidle::cache::detail
