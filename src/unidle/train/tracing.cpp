#include "unidle/train/tracing.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "unidle/base/clock.h"

namespace unidle::train {

namespace {

namespace profiler = torch::autograd::profiler;
namespace impl = torch::profiler::impl;
using Mark = std::unique_ptr<at::RecordFunction>;

constexpr std::int64_t kFirstStep = 10;                  // earlier steps allocate and tune
constexpr std::int64_t kLongest_ns = 60 * kNsPerSecond;  // slow steps end the window early, to keep the trace small

std::int64_t wanted_steps() {
  const char* text = std::getenv("UNIDLE_TRACE_STEPS");
  return text != nullptr ? std::max<std::int64_t>(0, std::atoll(text)) : 0;
}

std::string marked_now() { return "unidle.clock." + std::to_string(Events::now_ns()); }

Mark mark(const std::string& name) {
  auto made = std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE);
  made->before(name);
  return made;
}

/// Ties the profiler's clock to ours.
void mark_clock() {
  for (int i = 0; i < 3; ++i) {
    mark(marked_now());
  }
}

}  // namespace

/// Owns the marks of steps and the profiler's configuration.
struct Tracing::Window {
  impl::ProfilerConfig config{impl::ProfilerState::KINETO, /*report_input_shapes=*/true};
  std::set<impl::ActivityType> activities;
  bool open = false;
  std::int64_t first = 0;
  std::int64_t taken = 0;
  std::uint64_t attached_ns = 0;
  std::uint64_t begin_ns = 0;
  std::uint64_t cost_ns = 0;
  Mark step;
};

Tracing::Tracing(Events& events, bool cuda, std::int64_t from, std::int64_t to)
    : events_(events), cuda_(cuda), wanted_(events.observed() ? wanted_steps() : 0) {
  // CUPTI stays attached to a process and slows it down, so that on a GPU the window comes last in the run.
  const std::int64_t latest = std::max<std::int64_t>(1, to - from - wanted_ - 2);
  first_ = from + (cuda ? latest : std::min(latest, kFirstStep));
}

Tracing::~Tracing() {
  if (window_ && window_->open) {
    close();
  } else if (wanted_ > 0) {
    events_.trace({{"status", "off"}, {"reason", "the run ended before the window was over"}});
  }
}

void Tracing::step_over(std::int64_t steps) {
  if (wanted_ == 0 || steps < first_) {
    return;
  }
  const std::uint64_t start = Events::now_ns();
  try {
    if (!window_ || !window_->open) {
      open(steps);
    } else if (++window_->taken >= wanted_ || static_cast<std::int64_t>(start - window_->begin_ns) > kLongest_ns) {
      close();
    } else {
      window_->step.reset();
      window_->step = mark("ProfilerStep#" + std::to_string(window_->first + window_->taken));
    }
  } catch (const std::exception& error) {
    wanted_ = 0;
    window_.reset();
    events_.trace({{"status", "off"}, {"reason", error.what()}});
  }
  if (window_) {
    window_->cost_ns += Events::now_ns() - start;
  }
}

/// The first call prepares the profiler, which takes a while; the window begins one step later.
void Tracing::open(std::int64_t steps) {
  if (!window_) {
    window_ = std::make_unique<Window>();
    window_->activities.insert(impl::ActivityType::CPU);
    window_->attached_ns = Events::now_ns();
    if (cuda_) {
      window_->activities.insert(impl::ActivityType::CUDA);
    }
    profiler::prepareProfiler(window_->config, window_->activities);
    return;
  }
  profiler::enableProfiler(window_->config, window_->activities, {});
  window_->open = true;
  window_->first = steps;
  window_->begin_ns = Events::now_ns();
  mark_clock();
  window_->step = mark("ProfilerStep#" + std::to_string(steps));
}

void Tracing::close() {
  wanted_ = 0;
  const std::unique_ptr<Window> window = std::move(window_);
  try {
    const std::uint64_t end_ns = Events::now_ns();
    window->step.reset();
    mark_clock();
    const auto result = profiler::disableProfiler();
    const std::filesystem::path folder = std::filesystem::path(std::getenv("UNIDLE_PROBE_DIR")).parent_path();
    const std::string file = "trace-" + std::to_string(::getpid()) + ".json";
    result->save((folder / (file + ".part")).string());
    std::filesystem::rename(folder / (file + ".part"), folder / file);
    nlohmann::json note = {
        {"status", "recorded"},
        {"file", file},
        {"begin_ns", window->begin_ns},
        {"end_ns", end_ns},
        {"first_step", window->first},
        {"steps", window->taken},
        {"seconds", seconds(static_cast<std::int64_t>(Events::now_ns() - end_ns + window->cost_ns))}};
    if (cuda_) {
      note["attached_ns"] = window->attached_ns;
    }
    events_.trace(std::move(note));
  } catch (const std::exception& error) {
    events_.trace({{"status", "off"}, {"reason", error.what()}});
  }
}

}  // namespace unidle::train
