#include "unidle/cache/pool.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <set>

#include "unidle/base/testing/fake_clock.h"
#include "unidle/cache/features.h"
#include "unidle/cache/testing/scratch_cache.h"

namespace unidle::cache {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::ScratchCache;
using Kind = PoolOutcome::Kind;

/// What a test's fake predictors do, and what they have seen.
struct Script {
  std::mutex mutex;
  std::vector<std::vector<std::string>> batches;
  std::multiset<std::string> computed;
  std::set<std::string> deadly;   // crash the worker
  std::set<std::string> refused;  // get an error
  std::atomic<int> starts{0};
  std::atomic<int> failing_starts{0};
  std::atomic<bool> always_down{false};
  std::atomic<bool> open{true};  // predict() waits for it
  PredictorFacts facts{"fake", "1"};
};

/// One array: the bytes of the input.
class ScriptedPredictor final : public Predictor {
 public:
  explicit ScriptedPredictor(Script& script) : script_(script), facts_(script.facts) {
    ++script_.starts;
    if (script_.failing_starts > 0) {
      --script_.failing_starts;
      throw Error(ErrorCode::kChild, "fake", "does not start");
    }
  }
  const PredictorFacts& facts() const override { return facts_; }
  std::vector<Prediction> predict(std::span<const std::string> inputs, std::stop_token stop) override {
    while (!script_.open && !stop.stop_requested()) {
      std::this_thread::yield();
    }
    const std::scoped_lock lock(script_.mutex);
    script_.batches.emplace_back(inputs.begin(), inputs.end());
    std::vector<Prediction> predictions;
    for (const std::string& input : inputs) {
      if (script_.always_down || script_.deadly.contains(input)) {
        throw Error(ErrorCode::kChild, "fake", "was shut down");
      }
      predictions.push_back(
          {{make_tensor<char>("bytes", DType::kU8, {input.size()}, std::span(input.data(), input.size()))},
           script_.refused.contains(input) ? "is no sequence" : ""});
    }
    for (const std::string& input : inputs) {
      script_.computed.insert(input);
    }
    return predictions;
  }

 private:
  Script& script_;
  PredictorFacts facts_;
};

class PoolTest : public ScratchCache {
 protected:
  PoolOptions pool_options(unsigned workers = 1) {
    PoolOptions options;
    options.make = [this](std::stop_token) { return std::make_unique<ScriptedPredictor>(script_); };
    options.workers = workers;
    options.clock = &clock_;  // pauses take no time
    return options;
  }
  FeatureOptions feature_options(unsigned workers = 1) {
    FeatureOptions options;
    options.pool = pool_options(workers);
    return options;
  }
  static std::vector<std::string> sequences(std::size_t count) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(std::string(5 + i * 7 % 46, 'A') + std::to_string(i));
    }
    return all;
  }
  static bool is_of(const Feature& feature, const std::string& input) {
    const TensorView* bytes = feature.entry.find("bytes");
    return feature.good() && bytes != nullptr &&
           std::string_view(reinterpret_cast<const char*>(bytes->data.data()), bytes->data.size()) == input;
  }

  Script script_;
};

/// The outcomes of all inputs. `all_are_in` is called before waiting for the first outcome.
std::vector<PoolOutcome> outcomes_of(
    PredictorPool& pool, const std::vector<std::string>& inputs, const std::function<void()>& all_are_in = [] {}) {
  std::vector<std::promise<PoolOutcome>> promises(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    pool.submit(inputs[i], [&promise = promises[i]](PoolOutcome outcome) { promise.set_value(std::move(outcome)); });
  }
  all_are_in();
  std::vector<PoolOutcome> outcomes;
  for (auto& promise : promises) {
    outcomes.push_back(promise.get_future().get());
  }
  return outcomes;
}

TEST_F(PoolTest, BatchesInputsOfLikeLengthWithinTheBudget) {
  script_.open = false;
  PoolOptions options = pool_options();
  options.tokens_per_batch = 200;
  PredictorPool pool(options);
  const std::vector<std::string> inputs = sequences(300);
  std::atomic<std::size_t> done{0};
  for (const std::string& input : inputs) {
    pool.submit(input, [&](PoolOutcome) { ++done; });
  }
  script_.open = true;
  while (done < inputs.size()) {
    std::this_thread::yield();
  }
  std::size_t seen = 0;
  for (const auto& batch : script_.batches) {
    std::size_t longest = 0;
    for (const std::string& input : batch) {
      longest = std::max(longest, input.size());
    }
    EXPECT_TRUE(batch.size() == 1 || longest * batch.size() <= 200);
    seen += batch.size();
  }
  EXPECT_EQ(seen, inputs.size());
  const PoolCounts counts = pool.counts();
  EXPECT_EQ(counts.items, inputs.size());
  EXPECT_LT(counts.batches, 120U) << "in the order of arrival it would take more";
  EXPECT_LT(static_cast<double>(counts.padded_tokens), 1.2 * static_cast<double>(counts.tokens));
}

TEST_F(PoolTest, NoWorkerTakesThePartOfAnother) {
  script_.open = false;
  PredictorPool pool(pool_options(4));
  const std::vector<std::string> inputs = sequences(80);
  outcomes_of(pool, inputs, [&] { script_.open = true; });
  for (const auto& batch : script_.batches) {
    EXPECT_LE(batch.size(), inputs.size() / 4);
  }
}

TEST_F(PoolTest, AnInputLongerThanTheBudgetIsComputedAlone) {
  PoolOptions options = pool_options();
  options.tokens_per_batch = 10;
  PredictorPool pool(options);
  const auto outcomes = outcomes_of(pool, {std::string(50, 'A'), "ACD"});
  EXPECT_EQ(outcomes[0].kind, Kind::kDone);
  EXPECT_EQ(outcomes[1].kind, Kind::kDone);
}

TEST_F(PoolTest, AnInputThatIsRefusedHarmsNoOther) {
  script_.refused = {"BBB"};
  PredictorPool pool(pool_options());
  const auto outcomes = outcomes_of(pool, {"AAA", "BBB", "CCC"});
  EXPECT_EQ(outcomes[0].kind, Kind::kDone);
  EXPECT_EQ(outcomes[1].kind, Kind::kRefused);
  EXPECT_EQ(outcomes[1].reason, "is no sequence");
  EXPECT_EQ(outcomes[2].kind, Kind::kDone);
  EXPECT_EQ(script_.starts, 1);
}

TEST_F(PoolTest, InputsThatBringWorkersDownAreFoundAndAllOthersComputed) {
  std::vector<std::string> inputs = sequences(200);
  script_.deadly = {inputs[17], inputs[18], inputs[150]};
  PoolOptions options = pool_options(3);
  options.tokens_per_batch = 100'000;
  PredictorPool pool(options);
  const auto outcomes = outcomes_of(pool, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(outcomes[i].kind, script_.deadly.contains(inputs[i]) ? Kind::kPoison : Kind::kDone) << i;
    EXPECT_EQ(script_.computed.count(inputs[i]), script_.deadly.contains(inputs[i]) ? 0U : 1U) << i;
  }
}

TEST_F(PoolTest, AWorkerThatDoesNotStartIsTriedAgainWithPauses) {
  script_.failing_starts = 3;
  const std::int64_t before_ns = clock_.now_ns();
  PredictorPool pool(pool_options());
  EXPECT_EQ(outcomes_of(pool, {"AAA"})[0].kind, Kind::kDone);
  EXPECT_EQ(script_.starts, 4);
  EXPECT_EQ(clock_.now_ns() - before_ns, (100 + 200 + 400) * kNsPerMs);
}

TEST_F(PoolTest, WithoutAnyWorkerEverythingIsToldSo) {
  script_.failing_starts = 1000;
  PredictorPool pool(pool_options(2));
  EXPECT_THROW(pool.facts(), Error);
  const auto outcomes = outcomes_of(pool, {"AAA", "CCC"});
  EXPECT_EQ(outcomes[0].kind, Kind::kNoWorkers);
  EXPECT_THAT(outcomes[1].reason, HasSubstr("does not start"));
  EXPECT_FALSE(pool.try_submit("AAA", [](PoolOutcome) {}));
}

TEST_F(PoolTest, AWorkerThatFailsWhateverItGetsIsGivenUp) {
  script_.always_down = true;
  script_.open = false;
  const std::int64_t before_ns = clock_.now_ns();
  PredictorPool pool(pool_options());
  const auto outcomes = outcomes_of(pool, sequences(500), [&] { script_.open = true; });
  EXPECT_THAT(outcomes, Each(::testing::Field(&PoolOutcome::kind, Kind::kNoWorkers)));
  EXPECT_GE(script_.starts, 5);  // for five inputs alone
  EXPECT_LE(script_.starts, 7);  // and for one batch, or two: the first may be gathered before all inputs are in
  EXPECT_EQ(clock_.now_ns(), before_ns);
}

TEST_F(PoolTest, AFirstBatchThatFailsIsNoVerdictOnTheOthers) {
  std::vector<std::string> inputs = sequences(200);
  script_.deadly = {inputs.begin(), inputs.begin() + 4};
  PoolOptions options = pool_options();
  options.tokens_per_batch = 100'000;
  PredictorPool pool(options);
  const auto outcomes = outcomes_of(pool, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(outcomes[i].kind, i < 4 ? Kind::kPoison : Kind::kDone) << i;
  }
}

TEST_F(PoolTest, AFewInputsThatFailAgainAreNoVerdictEither) {
  script_.deadly = {"AAA", "BBB"};
  PoolOptions options = pool_options();
  options.poison_after = 3;  // six faults, of two inputs
  PredictorPool pool(options);
  EXPECT_THAT(outcomes_of(pool, {"AAA", "BBB"}), Each(::testing::Field(&PoolOutcome::kind, Kind::kPoison)));
  EXPECT_EQ(outcomes_of(pool, {"CCC"})[0].kind, Kind::kDone);
}

TEST_F(PoolTest, AWorkerThatComesBackAsAnotherIsNotUsed) {
  script_.deadly = {"BBB"};
  PredictorPool pool(pool_options());
  EXPECT_EQ(outcomes_of(pool, {"AAA"})[0].kind, Kind::kDone);
  script_.facts.version = "2";
  const auto outcomes = outcomes_of(pool, {"BBB", "CCC"});
  EXPECT_EQ(outcomes[1].kind, Kind::kNoWorkers);
  EXPECT_THAT(outcomes[1].reason, HasSubstr("after a new start is fake 2"));
}

TEST_F(PoolTest, WhenItIsFullSubmittersWaitAndTheImpatientAreRefused) {
  script_.open = false;
  PoolOptions options = pool_options();
  options.most_items = 10;
  PredictorPool pool(options);
  std::atomic<int> done{0};
  const auto count = [&](PoolOutcome) { ++done; };
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(pool.try_submit(std::to_string(i), count));
  }
  EXPECT_FALSE(pool.try_submit("10", count));
  std::atomic<bool> in{false};
  std::jthread patient([&] {
    pool.submit("11", count);
    in = true;
  });
  EXPECT_FALSE(in);
  script_.open = true;
  patient.join();
  while (done < 11) {
    std::this_thread::yield();
  }
}

TEST_F(PoolTest, AtItsEndWhatWaitsIsToldSo) {
  script_.open = false;
  std::atomic<int> cancelled{0};
  {
    PredictorPool pool(pool_options());
    for (int i = 0; i < 20; ++i) {
      pool.submit(std::to_string(i),
                  [&](PoolOutcome outcome) { cancelled += outcome.kind == Kind::kCancelled ? 1 : 0; });
    }
  }
  EXPECT_GE(cancelled, 1);
}

TEST_F(PoolTest, FeaturesAreComputedOnceAndThenThere) {
  const std::vector<std::string> inputs = sequences(100);
  std::vector<std::string> twice = inputs;
  twice.insert(twice.end(), inputs.begin(), inputs.end());
  {
    Store store(options());
    Features features(store, feature_options(2));
    const auto found = features.get(twice);
    for (std::size_t i = 0; i < twice.size(); ++i) {
      EXPECT_TRUE(is_of(found[i], twice[i]));
    }
  }
  EXPECT_EQ(script_.computed.size(), inputs.size());
  Store store(options());
  Features features(store, feature_options());
  EXPECT_TRUE(is_of(features.get(inputs[3]), inputs[3]));
  EXPECT_EQ(script_.computed.size(), inputs.size());
}

TEST_F(PoolTest, AnotherVersionOrOtherParametersAreOtherFeatures) {
  Store store(options());
  for (const char* parameters : {"{}", R"({"a":1})"}) {
    FeatureOptions other = feature_options();
    other.parameters = parameters;
    Features(store, other).get(std::string("AAA"));
  }
  script_.facts.version = "2";
  Features(store, feature_options()).get(std::string("AAA"));
  EXPECT_EQ(script_.computed.size(), 3U);
}

TEST_F(PoolTest, ThreadsThatAskForTheSameFeaturesComputeEachOnce) {
  const std::vector<std::string> inputs = sequences(200);
  Store store(options());
  Features features(store, feature_options(2));
  std::atomic<int> right{0};
  {
    std::latch start(4);
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        start.arrive_and_wait();
        for (std::size_t i = 0; i < inputs.size(); i += 10) {
          const std::size_t begin = (i + static_cast<std::size_t>(thread) * 50) % inputs.size();
          const auto part = std::span(inputs).subspan(begin, 10);
          const auto found = features.get(part);
          for (std::size_t k = 0; k < part.size(); ++k) {
            right += is_of(found[k], part[k]) ? 1 : 0;
          }
        }
      });
    }
  }
  EXPECT_EQ(right, 800);
  EXPECT_EQ(script_.computed.size(), inputs.size());
}

TEST_F(PoolTest, TwoOwnersOfOneCacheWaitForEachOther) {
  const std::vector<std::string> inputs = sequences(100);
  Store one(options());
  Store other(options());  // stands for another process
  Features first(one, feature_options());
  Features second(other, feature_options());
  script_.open = false;
  EXPECT_EQ(first.prefetch(std::span(inputs).first(50)), 50U);
  EXPECT_EQ(second.prefetch(std::span(inputs).subspan(50)), 50U);
  std::atomic<int> right{0};
  {
    const auto ask = [&](Features& features) {
      const auto found = features.get(inputs);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        right += is_of(found[i], inputs[i]) ? 1 : 0;
      }
    };
    std::jthread a([&] { ask(first); });
    std::jthread b([&] { ask(second); });
    script_.open = true;
  }
  EXPECT_EQ(right, 200);
  EXPECT_EQ(script_.computed.size(), inputs.size());
}

TEST_F(PoolTest, PrefetchComputesAheadAndNeverWaits) {
  const std::vector<std::string> inputs = sequences(100);
  Store store(options());
  FeatureOptions small = feature_options();
  small.pool.most_items = 20;
  Features features(store, small);
  script_.open = false;
  EXPECT_EQ(features.prefetch(inputs), 20U) << "no more than fit";
  EXPECT_EQ(features.prefetch(std::span(inputs).first(20)), 20U) << "those are under way";
  script_.open = true;
  const auto found = features.get(std::span(inputs).first(20));
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(is_of(found[i], inputs[i]));
  }
  EXPECT_EQ(script_.computed.size(), 20U);
  EXPECT_TRUE(is_of(features.get(inputs[20]), inputs[20])) << "refused for want of room, not for ever";
}

TEST_F(PoolTest, NothingIsComputedAheadWhileNothingCanBeStored) {
  const std::vector<std::string> inputs = sequences(20);
  Store store(options());
  Features features(store, feature_options());
  disk_.fail_from = 0;
  EXPECT_TRUE(is_of(features.get(inputs[0]), inputs[0]));
  EXPECT_EQ(features.prefetch(inputs), 0U) << "each would be computed again when it is asked for";
  EXPECT_EQ(script_.computed.size(), 1U);
  disk_.fail_from = unidle::testing::FailingDisk::kNever;
  clock_.advance(11 * kNsPerSecond);
  EXPECT_TRUE(is_of(features.get(inputs[1]), inputs[1]));
  EXPECT_EQ(features.prefetch(inputs), inputs.size());
}

TEST_F(PoolTest, PoisonIsAnsweredFromMemory) {
  script_.deadly = {"BBB"};
  Store store(options());
  Features features(store, feature_options());
  EXPECT_EQ(features.get(std::string("BBB")).kind, Kind::kPoison);
  const int starts = script_.starts;
  EXPECT_EQ(features.get(std::string("BBB")).kind, Kind::kPoison);
  EXPECT_EQ(script_.starts, starts);
  EXPECT_TRUE(is_of(features.get(std::string("CCC")), "CCC"));
}

TEST_F(PoolTest, WarmGoesOnWhereItWasStopped) {
  const std::vector<std::string> inputs = sequences(100);
  script_.refused = {inputs[5]};
  Store store(options());
  FeatureOptions small = feature_options();
  small.pool.most_items = 10;
  small.pool.items_per_batch = 5;
  const auto nothing = [](const std::string&, const Feature&) {};
  std::stop_source stop;
  Warmed first;
  {
    Features features(store, small);
    first = features.warm(
        inputs, stop.get_token(),
        [&](std::uint64_t done) { done >= 30 ? static_cast<void>(stop.request_stop()) : void(); }, nothing);
  }
  EXPECT_GE(first.inputs, 30U);
  EXPECT_LT(first.inputs, 100U);
  Features features(store, small);
  std::vector<std::string> failed;
  const Warmed second = features.warm(
      inputs, {}, [](std::uint64_t) {}, [&](const std::string& input, const Feature&) { failed.push_back(input); });
  EXPECT_EQ(second.inputs, 100U);
  EXPECT_EQ(second.failed, 1U);
  EXPECT_EQ(failed, std::vector{inputs[5]});
  EXPECT_GE(second.there, first.computed);
  EXPECT_EQ(second.there + second.computed, 99U);
  EXPECT_EQ(store.statistics().entries, 99U);
}

TEST_F(PoolTest, WithAFullDiskFeaturesAreComputedAndNotStored) {
  Store store(options());
  Features features(store, feature_options());
  disk_.fail_from = 0;
  const Feature feature = features.get(std::string("ACD"));
  EXPECT_TRUE(is_of(feature, "ACD"));
  EXPECT_FALSE(feature.entry.stored());
}

}  // namespace
}  // namespace unidle::cache
