#include "unidle/cache/store.h"

#include <algorithm>
#include <cstdlib>

#include "unidle/base/files.h"
#include "unidle/cache/detail/fork.h"
#include "unidle/cache/detail/state.h"

namespace unidle::cache {

namespace {

/// Leaks a parent's state in its child: closing the database would drop the parent's locks, and a thread that does not
/// exist in the child may have been using it.
void abandon(std::shared_ptr<detail::State> state) {
  static auto* const kAbandoned = new std::vector<std::shared_ptr<detail::State>>;
  kAbandoned->push_back(std::move(state));
}

}  // namespace

Claim::Claim(std::shared_ptr<detail::State> state, const Key& key)
    : state_(std::move(state)), key_(key), generation_(detail::fork_generation()) {}

Claim::~Claim() {
  if (!state_) {
    return;
  }
  if (generation_ == detail::fork_generation()) {
    state_->release(key_);
  } else {
    abandon(std::move(state_));
  }
}

Store::Store(Options options)
    : options_(std::move(options)),
      state_(std::make_shared<detail::State>(options_)),
      generation_(detail::fork_generation()) {}

Store::~Store() {
  if (generation_ != detail::fork_generation()) {
    abandon(std::move(state_));
  }
}

std::shared_ptr<detail::State> Store::state() {
  if (generation_.load(std::memory_order_acquire) != detail::fork_generation()) {
    const std::scoped_lock lock(renewing_);
    if (generation_ != detail::fork_generation()) {
      abandon(std::move(state_));
      Options options = options_;
      options.max_bytes.reset();  // keep the cache's current bound
      state_ = std::make_shared<detail::State>(options);
      generation_.store(detail::fork_generation(), std::memory_order_release);
    }
  }
  return state_;
}

std::optional<Entry> Store::get(const Key& key) { return state()->get(key); }

std::optional<Entry> Store::peek(const Key& key) { return state()->peek(key); }

bool Store::contains(const Key& key) { return state()->exists(key); }

Entry Store::put(const Key& key, std::vector<Tensor> tensors) { return put(claim(key), std::move(tensors)); }

Entry Store::put(const Claim& claim, std::vector<Tensor> tensors) {
  const bool stored = put(claim, views_of(tensors));
  return Entry::of(std::move(tensors), stored);
}

bool Store::put(const Claim& claim, std::span<const TensorView> tensors) {
  detail::Incoming entry(claim.key(), tensors);
  claim.state_->store({&entry, 1});
  return entry.stored;
}

Store::Got Store::try_put_many(std::span<const NewEntry> entries) {
  std::vector<std::optional<Claim>> claims;
  std::vector<detail::Incoming> incoming;
  for (const NewEntry& entry : entries.first(std::min(entries.size(), detail::State::kMostTogether))) {
    incoming.emplace_back(entry.key, entry.tensors);
    auto claim = try_claim(entry.key);  // fails for a repeated key, which we hold
    if (!claim) {
      incoming.pop_back();
      break;
    }
    claims.push_back(std::move(claim));
  }
  Got got{incoming.size(), 0};
  for (std::size_t begin = 0; begin < incoming.size();) {
    const std::size_t end = begin + claims[begin]->state_->store(std::span(incoming).subspan(begin));
    for (; begin < end; ++begin) {
      claims[begin].reset();  // stored entries may be evicted for later ones
    }
  }
  for (const detail::Incoming& entry : incoming) {
    got.stored += entry.stored ? 1 : 0;
  }
  return got;
}

std::size_t Store::put_many(std::span<const NewEntry> entries) {
  std::size_t stored = 0;
  while (!entries.empty()) {
    const Got got = try_put_many(entries);
    stored += got.stored;
    entries = entries.subspan(got.through);
    if (got.through == 0) {  // wait for the other process while we hold no claim it may wait for
      stored += put(claim(entries.front().key), entries.front().tensors) ? 1 : 0;
      entries = entries.subspan(1);
    }
  }
  return stored;
}

std::vector<Key> Store::keys(std::size_t part) { return state()->keys(part); }

bool Store::erase(const Key& key) {
  const Claim held = claim(key);
  return held.state_->erase(key);
}

Entry Store::get_or_compute(const Key& key, const std::function<std::vector<Tensor>()>& compute) {
  if (auto entry = get(key)) {
    return std::move(*entry);
  }
  const Claim held = claim(key);
  if (auto entry = get(key)) {  // computed while we waited
    return std::move(*entry);
  }
  return put(held, compute());
}

std::optional<Claim> Store::try_claim(const Key& key) {
  auto current = state();
  return current->claim(key, false) ? std::optional(Claim(std::move(current), key)) : std::nullopt;
}

Claim Store::claim(const Key& key) {
  auto current = state();
  current->claim(key, true);
  return {std::move(current), key};
}

std::filesystem::path Store::file_of(const Key& key) { return state()->file_of(key); }

Statistics Store::statistics() { return state()->statistics(); }

Verified Store::verify(std::stop_token stop, const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  return state()->verify(stop, progress);
}

Pruned Store::prune(std::optional<std::uint64_t> max_bytes) { return state()->prune(max_bytes); }

std::filesystem::path default_folder() {
  const char* folder = std::getenv("UNIDLE_CACHE");
  return folder != nullptr && *folder != '\0' ? std::filesystem::path(folder) : home_folder() / "cache";
}

}  // namespace unidle::cache
