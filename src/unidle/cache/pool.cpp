#include "unidle/cache/pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/error.h"

namespace unidle::cache {

namespace {

/// More faults than this are not caused by single inputs: bisection needs fewer to find one that crashes a worker.
constexpr int kMostFaults = 24;
/// Before the first success, this many inputs are tried alone; when all fail, the predictor is at fault. A predictor
/// that fails for half of its inputs is given up wrongly in one case of 32.
constexpr int kFirstInputs = 5;

}  // namespace

PredictorPool::PredictorPool(PoolOptions options)
    : options_(std::move(options)), clock_(options_.clock != nullptr ? *options_.clock : system_clock()) {
  options_.workers = std::max(options_.workers, 1U);
  options_.items_per_batch = std::max<std::size_t>(options_.items_per_batch, 1);
  options_.most_items = std::max<std::size_t>(options_.most_items, 1);
  for (unsigned i = 0; i < options_.workers; ++i) {
    workers_.emplace_back([this](std::stop_token stop) { work(stop); });
  }
}

PredictorPool::~PredictorPool() {
  for (std::jthread& worker : workers_) {
    worker.request_stop();
  }
  changed_.notify_all();
  workers_.clear();
  for (auto& [length, item] : waiting_) {
    finish(item, {PoolOutcome::Kind::kCancelled, {}, "the pool was stopped"});
  }
  for (Batch& batch : again_) {
    for (Item& item : batch) {
      finish(item, {PoolOutcome::Kind::kCancelled, {}, "the pool was stopped"});
    }
  }
}

PredictorFacts PredictorPool::facts() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return facts_ || lost_workers_ == options_.workers; });
  if (!facts_) {
    throw Error(lost_code_, "predictor", lost_reason_);
  }
  return *facts_;
}

void PredictorPool::add(Item item) {
  item.number = next_number_++;
  ++items_;
  const std::size_t length = item.input.size();
  waiting_.emplace(length, std::move(item));
  changed_.notify_all();
}

void PredictorPool::submit(std::string input, Done done) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return items_ < options_.most_items || lost_workers_ == options_.workers; });
    if (lost_workers_ < options_.workers) {
      add({std::move(input), std::move(done), 0, 0});
      return;
    }
  }
  done({PoolOutcome::Kind::kNoWorkers, {}, lost_reason_});
}

bool PredictorPool::try_submit(const std::string& input, const Done& done) {
  const std::scoped_lock lock(mutex_);
  if (items_ >= options_.most_items || lost_workers_ == options_.workers) {
    return false;
  }
  add({input, done, 0, 0});
  return true;
}

std::string PredictorPool::last_fault() const {
  const std::scoped_lock lock(mutex_);
  return last_fault_;
}

bool PredictorPool::has_worked() const {
  const std::scoped_lock lock(mutex_);
  return counts_.batches > 0;
}

bool PredictorPool::never_works() const {
  const std::scoped_lock lock(mutex_);
  return counts_.batches == 0 && lone_faults_ >= kFirstInputs;
}

PoolCounts PredictorPool::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

void PredictorPool::finish(Item& item, PoolOutcome outcome) {
  item.done(std::move(outcome));
  const std::scoped_lock lock(mutex_);
  --items_;
  changed_.notify_all();
}

/// The input that has waited longest and those nearest to it in length, up to the budget and at most one worker's share
/// of the waiting inputs: otherwise the other workers would idle, and callers would wait for inputs nobody asked for.
PredictorPool::Batch PredictorPool::gather() {
  const std::size_t part = (waiting_.size() + options_.workers - 1) / options_.workers;
  const std::size_t most = std::min(options_.items_per_batch, part);
  const auto oldest = std::min_element(waiting_.begin(), waiting_.end(),
                                       [](const auto& a, const auto& b) { return a.second.number < b.second.number; });
  auto shorter = oldest;
  auto longer = std::next(oldest);
  std::uint64_t longest = std::max<std::size_t>(oldest->first, 1);
  std::size_t count = 1;
  const auto fits = [&](std::uint64_t length) {
    return count < most && (count + 1) * std::max(longest, length) <= options_.tokens_per_batch;
  };
  for (;;) {
    const bool down = shorter != waiting_.begin() && fits(std::prev(shorter)->first);
    const bool up = longer != waiting_.end() && fits(longer->first);
    if (!down && !up) {
      break;
    }
    if (up && (!down || longer->first - oldest->first <= oldest->first - std::prev(shorter)->first)) {
      longest = std::max<std::uint64_t>(longest, longer->first);
      ++longer;
    } else {
      --shorter;
    }
    ++count;
  }
  Batch batch;
  batch.reserve(count);
  for (auto item = shorter; item != longer; ++item) {
    batch.push_back(std::move(item->second));
  }
  waiting_.erase(shorter, longer);
  return batch;
}

PredictorPool::Batch PredictorPool::take(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [&] { return !again_.empty() || !waiting_.empty(); });
  if (stop.stop_requested()) {
    return {};
  }
  const bool untried_first = counts_.batches == 0 && !waiting_.empty();  // so that a broken predictor is noticed early
  if (!again_.empty() && !(untried_first && again_.front().front().crashes > 0)) {
    Batch batch = std::move(again_.front());
    again_.pop_front();
    return batch;
  }
  return gather();
}

std::unique_ptr<Predictor> PredictorPool::start(std::stop_token stop, int& failed_starts) {
  while (!stop.stop_requested()) {
    try {
      {
        const std::scoped_lock lock(mutex_);
        ++counts_.starts;
      }
      std::unique_ptr<Predictor> predictor = options_.make(stop);
      const std::scoped_lock lock(mutex_);
      if (facts_ && *facts_ != predictor->facts()) {
        throw Error(ErrorCode::kChild, "predictor",
                    fmt::format("was {} {}, and after a new start is {} {}", facts_->identity, facts_->version,
                                predictor->facts().identity, predictor->facts().version));
      }
      facts_ = predictor->facts();
      changed_.notify_all();
      failed_starts = 0;
      return predictor;
    } catch (const Error& error) {
      if (stop.stop_requested()) {
        break;
      }
      // kInput: the program does not exist.
      if (++failed_starts >= options_.starts || error.code() == ErrorCode::kInput) {
        worker_is_lost(error.what(), error.code());
        return nullptr;
      }
      const std::int64_t pause_ns = std::min(options_.first_pause_ns << (failed_starts - 1), options_.longest_pause_ns);
      clock_.sleep_until(clock_.now_ns() + pause_ns, stop);
    }
  }
  return nullptr;
}

void PredictorPool::worker_is_lost(const std::string& reason, ErrorCode code) {
  std::vector<Item> unserved;
  {
    const std::scoped_lock lock(mutex_);
    lost_reason_ = reason;
    lost_code_ = code;
    if (++lost_workers_ == options_.workers) {
      for (auto& [length, item] : waiting_) {
        unserved.push_back(std::move(item));
      }
      waiting_.clear();
      for (Batch& batch : again_) {
        std::move(batch.begin(), batch.end(), std::back_inserter(unserved));
      }
      again_.clear();
    }
    changed_.notify_all();
  }
  for (Item& item : unserved) {
    finish(item, {PoolOutcome::Kind::kNoWorkers, {}, reason});
  }
}

void PredictorPool::work(std::stop_token stop) {
  std::unique_ptr<Predictor> predictor;
  int failed_starts = 0;
  int faults = 0;
  while (!stop.stop_requested()) {
    if (predictor == nullptr) {
      if (faults > 0 && has_worked()) {
        const std::int64_t pause_ns = options_.first_pause_ns << std::min(faults - 1, 16);
        clock_.sleep_until(clock_.now_ns() + std::min(pause_ns, options_.longest_pause_ns), stop);
      }
      predictor = start(stop, failed_starts);
      if (predictor == nullptr) {
        return;
      }
    }
    Batch batch = take(stop);
    if (batch.empty()) {
      continue;
    }
    compute(predictor, std::move(batch), stop);
    faults = predictor == nullptr ? faults + 1 : 0;
    if (faults > 0 && never_works()) {
      worker_is_lost(fmt::format("it failed with every input, each alone, the last time because: {}", last_fault()),
                     ErrorCode::kChild);
      return;
    }
    if (faults >= kMostFaults) {
      worker_is_lost(fmt::format("{} batches in a row failed, the last because: {}", faults, last_fault()),
                     ErrorCode::kChild);
      return;
    }
  }
}

void PredictorPool::compute(std::unique_ptr<Predictor>& predictor, Batch batch, std::stop_token stop) {
  std::vector<std::string> inputs;
  std::size_t longest = 0;
  std::size_t tokens = 0;
  for (const Item& item : batch) {
    inputs.push_back(item.input);
    longest = std::max(longest, item.input.size());
    tokens += item.input.size();
  }
  std::vector<Prediction> predictions;
  std::string fault;
  try {
    predictions = predictor->predict(inputs, stop);
    fault = predictions.size() == batch.size() ? "" : "another number of predictions than of inputs";
  } catch (const std::exception& error) {
    fault = error.what();
  }
  if (!fault.empty()) {
    predictor.reset();
    if (stop.stop_requested()) {
      for (Item& item : batch) {
        finish(item, {PoolOutcome::Kind::kCancelled, {}, "the pool was stopped"});
      }
    } else {
      after_fault(std::move(batch), fault);
    }
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    ++counts_.batches;
    counts_.items += batch.size();
    counts_.padded_tokens += longest * batch.size();
    counts_.tokens += tokens;
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const bool good = predictions[i].error.empty();
    finish(batch[i], {good ? PoolOutcome::Kind::kDone : PoolOutcome::Kind::kRefused, std::move(predictions[i].tensors),
                      std::move(predictions[i].error)});
  }
}

/// Computes the first input of a batch before anything else, then the rest.
void PredictorPool::try_alone(Batch batch) {
  const auto count = std::min<std::size_t>(batch.size(), kFirstInputs);
  const auto rest = batch.begin() + static_cast<std::ptrdiff_t>(count);
  if (rest != batch.end()) {
    again_.emplace_front(std::make_move_iterator(rest), std::make_move_iterator(batch.end()));
  }
  for (std::size_t i = count; i-- > 0;) {
    again_.emplace_front();
    again_.front().push_back(std::move(batch[i]));
  }
}

void PredictorPool::after_fault(Batch batch, const std::string& reason) {
  std::unique_lock lock(mutex_);
  ++counts_.faults;
  last_fault_ = reason;
  if (batch.size() == 1) {
    lone_faults_ += batch.front().crashes == 0 ? 1 : 0;
    if (++batch.front().crashes >= options_.poison_after) {
      lock.unlock();
      finish(batch.front(), {PoolOutcome::Kind::kPoison, {}, reason});
      return;
    }
    again_.push_back(std::move(batch));
  } else if (counts_.batches == 0) {
    try_alone(std::move(batch));
  } else {
    const auto middle = batch.begin() + static_cast<std::ptrdiff_t>(batch.size() / 2);
    again_.emplace_back(std::make_move_iterator(middle), std::make_move_iterator(batch.end()));
    batch.erase(middle, batch.end());
    again_.push_back(std::move(batch));
  }
  changed_.notify_all();
}

}  // namespace unidle::cache
