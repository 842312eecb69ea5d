#include "unidle/cache/detail/put_queue.h"

#include <utility>

namespace unidle::cache::detail {

namespace {

constexpr std::size_t kMostWaiting = 1024;
constexpr std::uint64_t kMostWaitingBytes = 64 << 20;

}  // namespace

PutQueue::PutQueue() : thread_([this](const std::stop_token& stop) { work(stop); }) {}

PutQueue::~PutQueue() = default;

void PutQueue::add(const Claim& claim, std::vector<Tensor> tensors, Done done) {
  Incoming entry(claim.key(), views_of(tensors));
  const std::uint64_t bytes = entry.blob.bytes;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return waiting_.entries.empty() ||
           (waiting_.entries.size() < kMostWaiting && waiting_.bytes + bytes <= kMostWaitingBytes);
  });
  waiting_.bytes += bytes;
  waiting_.entries.push_back(std::move(entry));
  waiting_.owners.push_back({claim.state_, std::move(tensors), std::move(done)});
  changed_.notify_all();
}

void PutQueue::work(const std::stop_token& stop) {
  for (;;) {
    Entries all;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [&] { return !waiting_.entries.empty(); })) {
        return;
      }
      all = std::exchange(waiting_, {});
      changed_.notify_all();
    }
    store(std::move(all));
  }
}

void PutQueue::store(Entries all) {
  const std::span<Incoming> entries = all.entries;
  for (std::size_t begin = 0; begin < entries.size();) {
    const std::size_t end = begin + all.owners[begin].state->store(entries.subspan(begin));
    for (; begin < end; ++begin) {  // report each part before storing the next
      Owner owner = std::move(all.owners[begin]);
      owner.done(std::move(owner.tensors), entries[begin].stored);
    }
  }
}

}  // namespace unidle::cache::detail
