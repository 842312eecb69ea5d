// Checks, by the order of events, that gradients are reduced while the backward pass continues.
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "unidle/train/ranks/ranks.h"

namespace unidle::train {
namespace {

constexpr int kWorld = 2;
constexpr std::chrono::seconds kLongestWait{60};

/// Counts the reductions that ended in this process, which runs all ranks.
class Reductions {
 public:
  Reductions() {
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(nullptr, [](const at::RecordFunction& call, auto*) {
                                      if (std::string_view(call.name()) == "gloo:all_reduce") {
                                        all().count();
                                      }
                                    }).scopes({at::RecordScope::USER_SCOPE}));
  }
  ~Reductions() { at::removeCallback(handle_); }
  Reductions(const Reductions&) = delete;
  Reductions& operator=(const Reductions&) = delete;

  static Reductions& all() {
    static Reductions reductions;
    return reductions;
  }
  bool wait_for(int wanted) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLongestWait, [&] { return ended_ >= wanted; });
  }

 private:
  void count() {
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

  at::CallbackHandle handle_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  int ended_ = 0;
};

/// Its backward pass waits until each rank has reduced something.
class WaitsForAReduction : public torch::autograd::Function<WaitsForAReduction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    went_on = Reductions::all().wait_for(kWorld);
    return gradients;
  }
  static thread_local bool went_on;
};
thread_local bool WaitsForAReduction::went_on = false;

/// The gradients of one rank after a pass through three layers, each of which fills a bucket. The backward pass of the
/// first layer, which comes last, waits until the other gradients are reduced.
std::vector<at::Tensor> gradients_of_rank(int rank, std::uint16_t port) {
  constexpr std::int64_t kWidth = 600;
  Ranks ranks({.rank = rank,
               .world = kWorld,
               .local_rank = rank,
               .local_world = kWorld,
               .address = "127.0.0.1",
               .port = port,
               .store_exists = false,
               .prefix = ""},
              kLongestWait);
  std::vector<at::Tensor> weights;
  for (int i = 0; i < 3; ++i) {
    weights.push_back(at::full({kWidth, kWidth}, 0.001).requires_grad_(true));
  }
  ranks.join_gradients(weights);
  const at::Tensor first = at::full({1, kWidth}, rank + 1.0).matmul(weights[0]);
  const at::Tensor loss = WaitsForAReduction::apply(first).matmul(weights[1]).matmul(weights[2]).mean();
  ranks.before_backward(loss);
  torch::autograd::backward({loss}, {});
  EXPECT_TRUE(WaitsForAReduction::went_on);
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& weight : weights) {
    gradients.push_back(weight.grad());
  }
  return gradients;
}

TEST(RanksOverlap, GradientsAreReducedWhileTheBackwardPassGoesOn) {
  const auto port = static_cast<std::uint16_t>(21000 + std::random_device{}() % 11000);
  Reductions::all();
  std::vector<std::vector<at::Tensor>> gradients(kWorld);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kWorld; ++rank) {
    threads.emplace_back([&, rank] { gradients[static_cast<std::size_t>(rank)] = gradients_of_rank(rank, port); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (std::size_t i = 0; i < gradients[0].size(); ++i) {
    EXPECT_TRUE(at::equal(gradients[0][i], gradients[1][i]));
    EXPECT_GT(gradients[0][i].abs().min().item<double>(), 0);
  }
}

}  // namespace
}  // namespace unidle::train
