// The engine's overhead per step: a model of one parameter, trained by the engine and by a bare loop that calls the
// same torch operations. Measures time and allocations of both, and how long a checkpoint stalls the loop. Prints one
// JSON document per line.
#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adamw.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/base/stats.h"
#include "unidle/telemetry/host.h"
#include "unidle/train/device.h"
#include "unidle/train/trainer.h"

namespace {

std::atomic<std::uint64_t> g_allocations{0};

void* counted(std::size_t bytes) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes)) {
    return memory;
  }
  throw std::bad_alloc();
}

}  // namespace

// Torch's own allocations are counted here too: those of the bare loop are subtracted.
void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace unidle;

constexpr int kRounds = 9;
constexpr int kSteps = 4000;

class OneNumber final : public data::Source {
 public:
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return 1000; }
  bool same_every_epoch() const override { return true; }
  std::uint64_t read(const data::ItemRequest& request, std::span<const data::Places> samples) const override {
    const auto value = static_cast<float>(request.item);
    std::memcpy(samples[0][0].data(), &value, sizeof(value));
    return sizeof(value);
  }

 private:
  std::vector<data::Field> fields_{{"x", data::DType::kF32, {1}}};
};

class Nearly final : public train::Workload {
 public:
  explicit Nearly(std::int64_t parameters) { weight_ = model_.register_parameter("weight", at::zeros({parameters})); }
  const data::Source& source() const override { return source_; }
  std::vector<train::FieldUse> field_uses() const override { return {train::FieldUse::kRaw}; }
  torch::nn::Module& model() override { return model_; }
  at::Tensor loss(const std::vector<at::Tensor>&) override { return weight_.sum(); }
  train::Effective effective() const override { return {}; }

 private:
  OneNumber source_;
  torch::nn::Module model_;
  at::Tensor weight_;
};

struct Cost {
  double step_us = 0;
  double allocations = 0;
};

Cost measured(const std::function<void()>& loop) {
  const std::uint64_t before = g_allocations.load();
  const std::int64_t start = system_clock().now_ns();
  loop();
  return {static_cast<double>(system_clock().now_ns() - start) / 1e3 / kSteps,
          static_cast<double>(g_allocations.load() - before) / kSteps};
}

Cost engine_step() {
  const train::Config config =
      train::Config::from_text("workload: nearly\n", "bench",
                               {"batch.size=1", fmt::format("train.samples={}", kSteps), "optimizer.fused=true",
                                "metrics.interval=100", "validation.interval=0", "cpu.threads=1", "device=cpu"});
  train::configure_torch(config);
  Nearly workload(1);
  train::Events events;
  train::Trainer trainer(workload, config, at::kCPU, events, {});
  return measured([&] { trainer.run(); });
}

Cost bare_step() {
  at::set_num_threads(1);
  at::Tensor weight = at::zeros({1}).requires_grad_(true);
  const std::vector<at::Tensor> parameters = {weight};
  const std::vector<at::Tensor> means = {at::zeros({1})};
  const std::vector<at::Tensor> squares = {at::zeros({1})};
  const std::vector<at::Tensor> counts = {at::zeros({})};
  return measured([&] {
    for (int step = 0; step < kSteps; ++step) {
      weight.sum().backward();
      const at::NoGradGuard no_grad;
      counts[0].add_(1);
      at::_fused_adamw_(parameters, {weight.grad()}, means, squares, {}, counts, 2e-4, 0.9, 0.999, 0.01, 1e-8, false,
                        false);
      weight.mutable_grad().reset();
    }
  });
}

/// How long save() stalls the loop, with a state of 100 MB; `megabytes` is set to the size of the file.
double checkpoint_ms(double& megabytes) {
  constexpr std::int64_t kParameters = 100'000'000 / 12;  // weights and two moments, fp32
  const TemporaryFolder folder;
  Nearly workload(kParameters);
  const train::Config config = train::Config::from_text("workload: nearly\n", "bench", {"optimizer.fused=true"});
  train::Events events;
  train::Step step(workload, config, at::kCPU, events, 1, nullptr, nullptr);
  const train::LiveState state = {.workload = "nearly",
                                  .seed = 1,
                                  .model = workload.model(),
                                  .optimizer = step.optimizer(),
                                  .precision = step.precision(),
                                  .averaged = step.averaged(),
                                  .device = at::kCPU};
  train::CheckpointFolder checkpoints(folder.path(), 2);
  std::vector<double> waits;
  for (int round = 1; round <= 6; ++round) {
    const std::int64_t start = system_clock().now_ns();
    checkpoints.save(state, {round, round});
    waits.push_back(static_cast<double>(system_clock().now_ns() - start) / 1e6);
    checkpoints.finish();  // as when the steps in between take longer than the write
  }
  megabytes = static_cast<double>(std::filesystem::file_size(train::checkpoints_in(folder.path())[0])) / 1e6;
  return median({waits.begin() + 1, waits.end()});  // the first one allocates the copy's memory
}

void print_row(const char* name, const char* unit, double ours, double theirs, std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  fmt::print("{}\n", nlohmann::json{{"name", name},
                                    {"unit", unit},
                                    {"ours", ours},
                                    {"peers", {{"bare loop of the same operations", theirs}}},
                                    {"ratio", median(ratios)},
                                    {"ratio_low", ratios.front()},
                                    {"ratio_high", ratios.back()},
                                    {"machine", telemetry::read_host_facts().cpu_model}}
                         .dump());
}

}  // namespace

int main() {
  std::vector<double> ours, theirs, ratios, our_allocations, their_allocations, allocation_ratios;
  engine_step();
  bare_step();
  for (int round = 0; round < kRounds; ++round) {
    const bool engine_first = round % 2 == 0;
    const Cost first = engine_first ? engine_step() : bare_step();
    const Cost second = engine_first ? bare_step() : engine_step();
    const Cost& engine = engine_first ? first : second;
    const Cost& bare = engine_first ? second : first;
    ours.push_back(engine.step_us);
    theirs.push_back(bare.step_us);
    ratios.push_back(engine.step_us / bare.step_us);
    our_allocations.push_back(engine.allocations);
    their_allocations.push_back(bare.allocations);
    allocation_ratios.push_back(engine.allocations / bare.allocations);
  }
  print_row("step of a model of one parameter", "us", median(ours), median(theirs), ratios);
  print_row("allocations of that step", "count", median(our_allocations), median(their_allocations), allocation_ratios);
  double megabytes = 0;
  const double wait = checkpoint_ms(megabytes);
  fmt::print(
      "{}\n",
      nlohmann::json{{"name", "loop held up by a checkpoint"}, {"unit", "ms"}, {"ours", wait}, {"megabytes", megabytes}}
          .dump());
  return 0;
}
