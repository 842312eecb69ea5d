#include "unidle/cache/features.h"

#include <algorithm>
#include <chrono>

#include "unidle/base/error.h"
#include "unidle/cache/detail/put_queue.h"

namespace unidle::cache {

namespace {

/// Number of failed inputs that are remembered; others are computed again.
constexpr std::size_t kMostRefused = 1 << 16;

/// How often a stop request is checked.
constexpr std::chrono::milliseconds kStopPoll(20);

Feature failure_of(PoolOutcome outcome) { return {{}, outcome.kind, std::move(outcome.reason)}; }

/// Waits for a promised feature; kCancelled on a stop.
Feature wait_for(const std::shared_future<Feature>& pending, std::stop_token stop) {
  while (stop.stop_possible() && pending.wait_for(kStopPoll) != std::future_status::ready) {
    if (stop.stop_requested()) {
      return {{}, PoolOutcome::Kind::kCancelled, "stopped"};
    }
  }
  return pending.get();
}

}  // namespace

Features::Features(Store& store, FeatureOptions options)
    : store_(store),
      options_(std::move(options)),
      put_queue_(std::make_unique<detail::PutQueue>()),
      pool_(options_.pool),
      facts_(pool_.facts()) {}

Features::~Features() = default;

Key Features::key(std::string_view input) const {
  return key_of({input, facts_.identity, facts_.version, options_.parameters, options_.layout});
}

/// A computation in this process; nobody else may compute the key until it is stored.
struct Features::Computing {
  std::optional<Claim> claim;
  std::shared_ptr<std::promise<Feature>> promise;
};

void Features::finish(Computing& computing, Feature feature) {
  const Key key = computing.claim->key();
  {
    const std::scoped_lock lock(mutex_);
    const bool lasting = feature.kind == PoolOutcome::Kind::kRefused || feature.kind == PoolOutcome::Kind::kPoison;
    if (lasting && refused_.size() < kMostRefused) {
      refused_.emplace(key, feature);
    }
    pending_.erase(key);
  }
  // Release the claim before fulfilling the promise: a waiter may claim the key at once.
  computing.claim.reset();
  computing.promise->set_value(std::move(feature));
}

PredictorPool::Done Features::when_done(Claim claim, std::shared_ptr<std::promise<Feature>> promise) {
  auto computing = std::make_shared<Computing>(Computing{std::move(claim), std::move(promise)});
  return [this, computing](PoolOutcome outcome) {
    if (outcome.kind != PoolOutcome::Kind::kDone) {
      finish(*computing, failure_of(std::move(outcome)));
      return;
    }
    try {
      put_queue_->add(*computing->claim, std::move(outcome.tensors),
                      [this, computing](std::vector<Tensor> tensors, bool stored) {
                        stores_ = stored;
                        finish(*computing, {Entry::of(std::move(tensors), stored), {}, {}});
                      });
    } catch (const std::exception& error) {  // invalid tensors
      finish(*computing, {{}, PoolOutcome::Kind::kRefused, error.what()});
    }
  };
}

Features::Answer Features::ask(const Key& key, const std::string& input, bool wait_for_room) {
  if (auto entry = store_.get(key)) {
    return {Asked::kThere, {std::move(*entry), {}, {}}, {}};
  }
  std::unique_lock lock(mutex_);
  if (const auto refused = refused_.find(key); refused != refused_.end()) {
    return {Asked::kThere, refused->second, {}};
  }
  if (const auto pending = pending_.find(key); pending != pending_.end()) {
    return {Asked::kPending, {}, pending->second};
  }
  auto claim = store_.try_claim(key);
  if (!claim) {
    return {Asked::kElsewhere, {}, {}};
  }
  if (auto entry = store_.get(key)) {  // stored by somebody else since the first look
    return {Asked::kThere, {std::move(*entry), {}, {}}, {}};
  }
  auto promise = std::make_shared<std::promise<Feature>>();
  const Pending future = promise->get_future().share();
  pending_.emplace(key, future);
  lock.unlock();
  const PredictorPool::Done done = when_done(std::move(*claim), std::move(promise));
  if (wait_for_room) {
    pool_.submit(input, done);
  } else if (!pool_.try_submit(input, done)) {
    done({PoolOutcome::Kind::kCancelled, {}, "the pool is full"});
    return {Asked::kFull, {}, {}};
  }
  return {Asked::kPending, {}, future};
}

Feature Features::wait_elsewhere(const Key& key, const std::string& input, std::stop_token stop) {
  while (!stop.stop_requested()) {
    if (stop.stop_possible()) {
      if (!store_.try_claim(key)) {
        std::this_thread::sleep_for(kStopPoll);
        continue;
      }
    } else {
      store_.claim(key);  // waits until the holder is done or has ended
    }
    Answer answer = ask(key, input, true);
    if (answer.asked == Asked::kThere) {
      return std::move(answer.feature);
    }
    if (answer.asked == Asked::kPending) {
      Feature feature = wait_for(answer.pending, stop);
      if (feature.kind != PoolOutcome::Kind::kCancelled) {
        return feature;
      }
    }
  }
  return {{}, PoolOutcome::Kind::kCancelled, "stopped"};
}

std::vector<Feature> Features::get(std::span<const std::string> inputs) {
  std::vector<Key> keys;
  std::vector<Answer> answers;
  for (const std::string& input : inputs) {
    keys.push_back(key(input));
    answers.push_back(ask(keys.back(), input, true));
  }
  // First everything computed here; only then wait for other processes, while we hold no claim that they may wait for.
  std::vector<Feature> features(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (answers[i].asked == Asked::kPending) {
      features[i] = answers[i].pending.get();
      if (features[i].kind == PoolOutcome::Kind::kCancelled) {
        answers[i].asked = Asked::kElsewhere;  // from a prefetch that found the pool full
      }
    } else if (answers[i].asked == Asked::kThere) {
      features[i] = std::move(answers[i].feature);
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (answers[i].asked == Asked::kElsewhere) {
      features[i] = wait_elsewhere(keys[i], inputs[i], {});
    }
  }
  return features;
}

Feature Features::get(const std::string& input) { return std::move(get(std::span(&input, 1)).front()); }

std::size_t Features::prefetch(std::span<const std::string> inputs) {
  if (!stores_) {
    return 0;  // unstored results would be computed again on request
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Key wanted = key(inputs[i]);
    if (!store_.contains(wanted) && ask(wanted, inputs[i], false).asked == Asked::kFull) {
      return i;
    }
  }
  return inputs.size();
}

Warmed Features::warm(std::span<const std::string> inputs, std::stop_token stop,
                      const std::function<void(std::uint64_t done)>& progress,
                      const std::function<void(const std::string& input, const Feature& why)>& failed) {
  // As many at once as the pool accepts; the remaining inputs use no memory.
  const std::size_t at_once = std::max<std::size_t>(options_.pool.most_items, 1);
  Warmed warmed;
  for (std::size_t begin = 0; begin < inputs.size() && !stop.stop_requested(); begin += at_once) {
    const auto part = inputs.subspan(begin, std::min(at_once, inputs.size() - begin));
    std::vector<Key> keys;
    std::vector<Answer> answers;
    for (const std::string& input : part) {
      if (stop.stop_requested()) {
        break;
      }
      keys.push_back(key(input));
      answers.push_back(ask(keys.back(), input, true));
    }
    for (const bool elsewhere : {false, true}) {
      for (std::size_t i = 0; i < answers.size(); ++i) {
        Answer& answer = answers[i];
        if ((answer.asked == Asked::kElsewhere) != elsewhere) {
          continue;
        }
        const Feature feature = answer.asked == Asked::kThere     ? answer.feature
                                : answer.asked == Asked::kPending ? wait_for(answer.pending, stop)
                                                                  : wait_elsewhere(keys[i], part[i], stop);
        if (feature.kind == PoolOutcome::Kind::kCancelled) {
          return warmed;
        }
        const bool computed = feature.good() && answer.asked == Asked::kPending;
        ++warmed.inputs;
        warmed.computed += computed ? 1 : 0;
        warmed.there += feature.good() && !computed ? 1 : 0;
        warmed.unstored += computed && !feature.entry.stored() ? 1 : 0;
        if (!feature.good()) {
          ++warmed.failed;
          failed(part[i], feature);
        }
        progress(warmed.inputs);
      }
    }
  }
  return warmed;
}

}  // namespace unidle::cache
