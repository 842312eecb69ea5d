// Stores entries, many at a time with one wait for the disk.
#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/error.h"
#include "unidle/cache/detail/state.h"

namespace unidle::cache::detail {

namespace {

constexpr std::int64_t kRetry_ns = 10 * kNsPerSecond;  // pause after a failure
constexpr std::uint64_t kMostBytesTogether = 32 << 20;
/// Share of the bound, so that entries stored together do not push each other out of the small queue.
constexpr std::uint64_t kShareTogether = 20;

}  // namespace

/// Entries that are stored together.
class State::Group {
 public:
  explicit Group(std::optional<std::uint64_t> max_bytes)
      : most_bytes_(max_bytes ? std::min(kMostBytesTogether, *max_bytes / kShareTogether) : kMostBytesTogether) {}

  bool has_room(std::uint64_t bytes) const {
    return entries.empty() || (entries.size() < kMostTogether && bytes_ + bytes <= most_bytes_);
  }
  void add(Incoming& entry, TemporaryBlob temporary, bool replaces) {
    entries.push_back(&entry);
    temporaries.push_back(std::move(temporary));
    replacing.push_back(replaces);
    rows.push_back({{entry.key, entry.blob.bytes, entry.blob.named}});
    bytes_ += entry.blob.bytes;
  }

  std::vector<Incoming*> entries;
  std::vector<TemporaryBlob> temporaries;
  std::vector<bool> replacing;  // the key has an entry already
  std::vector<Wanted> rows;

 private:
  std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0;
};

/// Returns how many entries were handled; those that are too large are left out of the group.
std::size_t State::write(std::span<Incoming> entries, Group& group) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Incoming& entry = entries[i];
    if (max_bytes_ && entry.blob.bytes > *max_bytes_) {
      warn_once("large", fmt::format("an entry of {} bytes is not stored: the cache may hold {}", entry.blob.bytes,
                                     *max_bytes_));
      continue;
    }
    if (!group.has_room(entry.blob.bytes)) {
      return i;
    }
    try {
      group.add(entry, files_.write(entry.key, entry.blob), files_.exists(entry.key));
    } catch (const Error&) {
      if (group.entries.empty()) {
        throw;
      }
      return i;  // may succeed once the others have released their open files and room
    }
  }
  return entries.size();
}

void State::make_room(std::span<Wanted> blobs) {
  const auto add = [&](Index& index, std::span<Wanted> some) {
    index.add(some, max_bytes_, [this](const Key& other) { return remove(other); });
  };
  with_index([&](Index& index) { add(index, blobs); });
  const auto refused = [](const Wanted& wanted) { return !wanted.fits; };
  if (std::any_of(blobs.begin(), blobs.end(), refused)) {
    hot_.release();  // our own held entries may have been in the way
    for (Wanted& wanted : blobs) {
      if (refused(wanted)) {
        with_index([&](Index& index) { add(index, {&wanted, 1}); });
      }
    }
  }
  if (std::any_of(blobs.begin(), blobs.end(), refused)) {
    warn_once("held", "the cache is full of entries that are being read; what is new is not stored");
  }
}

/// Syncs the content of replacements, before any entry gets its name.
void State::sync_replacing(Group& group) {
  std::vector<TemporaryBlob*> files;
  for (std::size_t i = 0; i < group.entries.size(); ++i) {
    if (group.replacing[i]) {
      files.push_back(&group.temporaries[i]);
    }
  }
  if (const int failure = files_.sync_content(files); failure != 0) {
    throw system_error(ErrorCode::kIo, folder_.string(), "cannot be written", failure);
  }
}

int State::publish(Group& group) {
  std::vector<std::size_t> named;
  std::set<std::filesystem::path> changed;
  int failure = 0;
  std::size_t next = 0;
  for (; next < group.entries.size(); ++next) {
    if (group.rows[next].fits) {
      failure = files_.publish(group.temporaries[next], group.rows[next].blob.key, changed);
      if (failure != 0) {
        break;
      }
      board_->bump_generation(group.rows[next].blob.key);
      named.push_back(next);
    }
  }
  for (; next < group.entries.size(); ++next) {  // remove the rows of blobs that were not stored
    if (!group.replacing[next]) {
      forget(group.rows[next].blob.key);
    }
  }
  if (const int unsafe = durable() ? sync_published(group, named, changed) : 0; unsafe != 0) {
    return unsafe;
  }
  for (const std::size_t i : named) {
    group.entries[i]->stored = true;
  }
  return failure;
}

/// Syncs content and names. The names exist already, so the file system writes both together; waiting for the content
/// first would write its journal twice. Only replacements have their content synced earlier. Undoes what failed.
int State::sync_published(Group& group, std::span<const std::size_t> named,
                          const std::set<std::filesystem::path>& changed) {
  std::vector<TemporaryBlob*> files;
  std::vector<TemporaryBlob*> synced;
  for (const std::size_t i : named) {
    (group.replacing[i] ? synced : files).push_back(&group.temporaries[i]);
  }
  const int failure = files_.sync_published(files, synced, changed);
  for (const std::size_t i : named) {
    if (failure != 0 && !group.replacing[i]) {
      erase(group.rows[i].blob.key);
    }
  }
  return failure;
}

std::size_t State::store(std::span<Incoming> entries) {
  if (!writable_ || pausing()) {
    return entries.size();
  }
  try {
    with_index([](Index&) {});  // open it before the blobs use the last descriptors
    Group group(max_bytes_);
    const std::size_t taken = write(entries, group);
    if (durable()) {
      sync_replacing(group);
    }
    if (!group.entries.empty()) {
      make_room(group.rows);
      if (const int failure = publish(group); failure != 0) {
        throw system_error(ErrorCode::kIo, folder_.string(), "cannot be written", failure);
      }
    }
    return taken;
  } catch (const Error& error) {
    retry_ns_ = clock_.now_ns() + kRetry_ns;
    warn_once("write", fmt::format("the cache goes on without storing: {}", error.what()));
    return entries.size();
  }
}

bool State::pausing() const {
  const std::int64_t left_ns = retry_ns_ - clock_.now_ns();
  return left_ns > 0 && left_ns <= kRetry_ns;  // a larger value means that the clock was set back
}

}  // namespace unidle::cache::detail
