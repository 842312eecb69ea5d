#include "unidle/account/epochs.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "unidle/record/note_types.h"

namespace unidle::account {

namespace {

std::int64_t input_ns(const record::Step& step) { return std::max<std::int64_t>(0, step.input_ns.value_or(0)); }

/// Calls `visit(step, first of its epoch, samples before it)` for every step.
template <typename Visit>
void walk_epochs(const Timeline& timeline, std::optional<double> samples_per_epoch, Visit visit) {
  double samples = 0;
  double next_epoch = 0;
  for (const record::Step& step : timeline.steps) {
    const bool first = samples_per_epoch && samples >= next_epoch;
    while (samples_per_epoch && samples >= next_epoch) {
      next_epoch += *samples_per_epoch;
    }
    visit(step, first, samples);
    samples += static_cast<double>(step.samples);
  }
}

constexpr std::size_t kFewestForBursts = 20;  // with fewer steps, a tenth is only one or two

}  // namespace

std::optional<double> reported_samples_per_epoch(const RunData& run) {
  std::optional<double> each;
  record::each_note<record::NoteType::kData>(run.notes, [&](const auto& note) {
    const auto told = note.number("samples_per_epoch");
    each = told && *told > 0 ? told : each;
  });
  return each;
}

std::optional<double> input_bursts(const Timeline& timeline, std::optional<double> samples_per_epoch) {
  const std::size_t half = timeline.steps.size() / 2;
  std::vector<double> waits;
  std::size_t index = 0;
  walk_epochs(timeline, samples_per_epoch, [&](const record::Step& step, bool first, double) {
    if (index++ >= half && !first) {
      waits.push_back(static_cast<double>(input_ns(step)));
    }
  });
  if (waits.size() < kFewestForBursts) {
    return std::nullopt;
  }
  std::sort(waits.begin(), waits.end(), std::greater<>());
  const auto tenth = waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 10);
  const double longest = std::accumulate(waits.begin(), tenth, 0.0);
  const double all = std::accumulate(tenth, waits.end(), longest);
  return all > 0 ? std::optional(longest / all) : std::nullopt;
}

std::optional<AfterFirstEpoch> after_first_epoch(const Timeline& timeline, double samples_per_epoch) {
  std::optional<AfterFirstEpoch> later;
  walk_epochs(timeline, samples_per_epoch, [&](const record::Step& step, bool, double samples) {
    if (samples >= samples_per_epoch) {
      later = later ? later : AfterFirstEpoch{step.t_ns, 0, 0};
      later->input_s += static_cast<double>(input_ns(step)) * 1e-9;
      later->training_s += static_cast<double>(step.t_ns + step.duration_ns - begin_with_input_ns(step)) * 1e-9;
    }
  });
  return later;
}

double epoch_start_wait_s(const Timeline& timeline, double samples_per_epoch, std::int64_t workers) {
  std::vector<double> waits;
  for (const record::Step& step : timeline.steps) {
    waits.push_back(static_cast<double>(input_ns(step)));
  }
  if (waits.empty()) {
    return 0;
  }
  const auto middle = waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 2);
  std::nth_element(waits.begin(), middle, waits.end());
  const double usual_ns = *middle;
  double total_ns = 0;
  std::int64_t step_of_pass = 0;
  walk_epochs(timeline, samples_per_epoch, [&](const record::Step& step, bool first, double) {
    step_of_pass = first ? 0 : step_of_pass + 1;
    if (step_of_pass < workers) {
      total_ns += std::max(0.0, static_cast<double>(input_ns(step)) - usual_ns);
    }
  });
  return total_ns * 1e-9;
}

}  // namespace unidle::account
