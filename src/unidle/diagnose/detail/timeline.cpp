#include "unidle/diagnose/detail/timeline.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <span>

#include "unidle/trace/recorded.h"

namespace unidle::diagnose::detail {

namespace {

using Steps = std::span<const record::Step>;
using Part = std::optional<std::int64_t> record::Step::*;

std::int64_t positive(const std::optional<std::int64_t>& value) { return std::max<std::int64_t>(0, value.value_or(0)); }

std::int64_t parts_ns(const record::Step& step) {
  return positive(step.input_ns) + positive(step.transfer_ns) + positive(step.forward_ns) + positive(step.backward_ns) +
         positive(step.optimizer_ns) + positive(step.sync_ns);
}

std::vector<record::Step> steps_of_busiest(std::vector<record::Step> steps) {
  std::erase_if(steps, [](const record::Step& step) { return step.duration_ns < 0; });
  std::map<std::int64_t, std::size_t> count;
  for (auto at = steps.begin(); at != steps.end();) {
    const auto next = std::find_if(at, steps.end(), [&](const auto& step) { return step.process != at->process; });
    count[at->process] += static_cast<std::size_t>(next - at);
    at = next;
  }
  const auto most =
      std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (count.size() > 1) {
    std::erase_if(steps, [&](const record::Step& step) { return step.process != most->first; });
  }
  const auto earlier = [](const record::Step& a, const record::Step& b) { return a.t_ns < b.t_ns; };
  if (!std::is_sorted(steps.begin(), steps.end(), earlier)) {
    std::stable_sort(steps.begin(), steps.end(), earlier);
  }
  return steps;
}

Intervals spans_of(const std::vector<record::Span>& spans, std::string_view kind, const Timeline& timeline) {
  std::vector<Interval> found;
  for (const record::Span& span : spans) {
    if (span.kind == kind && (!timeline.process || span.process == *timeline.process)) {
      found.push_back(
          {std::max(span.t_ns, timeline.begin_ns), std::min(span.t_ns + span.duration_ns, timeline.end_ns)});
    }
  }
  return Intervals(std::move(found));
}

std::int64_t count_of(const std::vector<record::Span>& spans, std::string_view kind, const Timeline& timeline) {
  return std::count_if(spans.begin(), spans.end(), [&](const record::Span& span) {
    return span.kind == kind && (!timeline.process || span.process == *timeline.process);
  });
}

/// Where the input wait was recorded as part of a step but took place before its begin.
std::int64_t step_begin_ns(const record::Step& step) {
  return step.t_ns - std::max<std::int64_t>(0, parts_ns(step) - step.duration_ns);
}

/// Begin and end by the record's own word, and by its first and last timestamps where that is missing.
void set_ends(const record::Reader& reader, const std::vector<record::Span>& spans, Timeline& timeline) {
  std::vector<Interval> seen;
  for (const record::Step& step : timeline.steps) {
    seen.push_back({step_begin_ns(step), step.t_ns + step.duration_ns});
  }
  for (const record::Span& span : spans) {
    seen.push_back({span.t_ns, span.t_ns + span.duration_ns});
  }
  const auto start = reader.time(record::meta::kStartNs);
  const auto end = reader.time(record::meta::kEndNs);
  const bool told = start && end;
  for (const record::Series& series : told ? std::vector<record::Series>{} : reader.all_series()) {
    const std::vector<record::Point> points = reader.points(series);
    if (!points.empty()) {
      seen.push_back({points.front().t_ns, points.back().t_ns});
    }
  }
  timeline.begin_ns = start.value_or(0);
  timeline.end_ns = end.value_or(timeline.begin_ns);
  if (!start && !seen.empty()) {
    timeline.begin_ns =
        std::min_element(seen.begin(), seen.end(), [](auto& a, auto& b) { return a.begin_ns < b.begin_ns; })->begin_ns;
  }
  if (!end && !seen.empty()) {
    timeline.end_ns =
        std::max_element(seen.begin(), seen.end(), [](auto& a, auto& b) { return a.end_ns < b.end_ns; })->end_ns;
  }
  timeline.end_ns = std::max(timeline.begin_ns, timeline.end_ns);
}

void set_slowed(const record::Reader& reader, Timeline& timeline) {
  if (!timeline.process) {
    return;
  }
  if (const auto since = trace::attached_since(reader.notes(), *timeline.process)) {
    const auto slowed = [&](const record::Step& step) { return step.t_ns + step.duration_ns > *since; };
    const auto first = std::find_if(timeline.steps.begin(), timeline.steps.end(), slowed);
    timeline.first_slowed = static_cast<std::size_t>(first - timeline.steps.begin());
  }
}

}  // namespace

std::size_t warm_up_steps(std::size_t steps) { return std::min(std::clamp<std::size_t>(steps / 20, 3, 20), steps / 2); }

std::int64_t step_period_ns(const record::Step& step, const Intervals& pauses) {
  const std::int64_t begin = step.t_ns;
  const std::int64_t inside = step.duration_ns - pauses.overlap_ns(begin, begin + step.duration_ns);
  return std::max(inside, parts_ns(step));
}

Timeline make_timeline(const record::Reader& reader) {
  Timeline timeline;
  timeline.steps = steps_of_busiest(reader.steps());
  if (!timeline.steps.empty()) {
    timeline.process = timeline.steps.front().process;
  }
  const std::vector<record::Span> spans = reader.spans();
  set_ends(reader, spans, timeline);
  timeline.first_steady = warm_up_steps(timeline.steps.size());
  set_slowed(reader, timeline);
  timeline.validations = count_of(spans, "validate", timeline);
  timeline.checkpoints = count_of(spans, "checkpoint", timeline);
  timeline.spans_seen = !spans.empty() || !timeline.steps.empty();
  timeline.pauses = spans_of(spans, "validate", timeline).plus(spans_of(spans, "checkpoint", timeline));
  std::vector<Interval> steps;
  for (const record::Step& step : timeline.steps) {
    steps.push_back(
        {std::max(step_begin_ns(step), timeline.begin_ns), std::min(step.t_ns + step.duration_ns, timeline.end_ns)});
  }
  const Intervals in_steps(std::move(steps));
  timeline.starts = spans_of(spans, "loader_start", timeline).minus(in_steps).minus(timeline.pauses);
  timeline.training = in_steps.minus(timeline.pauses).plus(timeline.starts);
  return timeline;
}

PhaseTimes phase_times(const Timeline& timeline, const std::vector<record::Span>& spans) {
  const Intervals run({{timeline.begin_ns, timeline.end_ns}});
  // Whoever keeps the best model saves it before the validation is seen to be over.
  const Intervals checkpoint = spans_of(spans, "checkpoint", timeline);
  const Intervals validate = spans_of(spans, "validate", timeline).minus(checkpoint);
  Intervals startup = spans_of(spans, "startup", timeline);
  if (!timeline.training.empty()) {
    startup = startup.plus(Intervals({{timeline.begin_ns, timeline.training.all().front().begin_ns}}));
  }
  const Intervals told = timeline.training.plus(timeline.pauses);
  startup = startup.minus(told);
  const auto seconds = [](const Intervals& intervals) { return static_cast<double>(intervals.total_ns()) * 1e-9; };
  return {seconds(startup), seconds(timeline.training), seconds(validate), seconds(checkpoint),
          seconds(run.minus(told).minus(startup))};
}

namespace {

bool seen(Steps steps, Part part) {
  return std::any_of(steps.begin(), steps.end(), [&](const record::Step& step) { return (step.*part).has_value(); });
}

/// An observer that thins itself out times the passes of some steps only. Where none has a time nobody looked.
bool seen_in_full(const record::Step& step) { return step.forward_ns || step.backward_ns; }

double sum(Steps steps, Part part) {
  double total = 0;
  for (const record::Step& step : steps) {
    total += static_cast<double>(positive(step.*part));
  }
  return total;
}

double period_of(Steps steps, const Intervals& pauses) {
  double total = 0;
  for (const record::Step& step : steps) {
    total += static_cast<double>(step_period_ns(step, pauses));
  }
  return total;
}

/// Waits and copies are those of all steps. What they leave is divided as in the steps that were seen in full.
StepShares shares_of(Steps steps, const Intervals& pauses, double starts_ns, double period_ns) {
  std::vector<record::Step> some;
  Steps full = steps;
  bool input_in_all = false;
  const auto seen_count = static_cast<std::size_t>(std::count_if(steps.begin(), steps.end(), seen_in_full));
  if (seen_count > 0 && seen_count < steps.size()) {
    some.reserve(seen_count);
    std::copy_if(steps.begin(), steps.end(), std::back_inserter(some), seen_in_full);
    full = some;
    input_in_all = std::any_of(steps.begin(), steps.end(),
                               [](const record::Step& step) { return !seen_in_full(step) && step.input_ns; });
  }
  const double full_ns = std::max(1.0, period_of(full, pauses));
  const auto share = [&](Part part) { return sum(steps, part) / period_ns; };
  const auto full_share = [&](Part part) { return sum(full, part) / full_ns; };
  const double training = 1 - starts_ns / period_ns;  // the rest is starting workers
  StepShares shares;
  shares.input = input_in_all ? share(&record::Step::input_ns) : training * full_share(&record::Step::input_ns);
  shares.transfer = share(&record::Step::transfer_ns);
  shares.sync = share(&record::Step::sync_ns);
  const double left = std::max(0.0, training - shares.input - shares.transfer - shares.sync);
  const double full_left = 1 - full_share(&record::Step::input_ns) - full_share(&record::Step::transfer_ns) -
                           full_share(&record::Step::sync_ns);
  const double scale = full_left > 0 ? left / full_left : 0;
  shares.compute = scale * (full_share(&record::Step::forward_ns) + full_share(&record::Step::backward_ns));
  shares.optimizer = scale * full_share(&record::Step::optimizer_ns);
  shares.input += starts_ns / period_ns;
  shares.other = std::max(0.0, 1 - shares.input - shares.transfer - shares.compute - shares.sync - shares.optimizer);
  if (!seen(steps, &record::Step::forward_ns) && !seen(steps, &record::Step::backward_ns)) {
    std::swap(shares.compute, shares.other);  // what is left of a step is computing, unless its parts were seen
  }
  return shares;
}

/// Those that rates are of: all after warm-up, or those before a profiler's window; empty where they are too few.
Steps rated_steps(const Timeline& timeline) {
  constexpr std::size_t kFewest = 5;
  const Steps all(timeline.steps);
  if (!timeline.first_slowed) {
    return all.subspan(timeline.first_steady);
  }
  const std::size_t warm = std::min(timeline.first_steady, warm_up_steps(*timeline.first_slowed));
  const Steps before = all.first(*timeline.first_slowed).subspan(warm);
  return before.size() < kFewest ? Steps() : before;
}

/// Samples and steps over the time from the first step's begin to the last one's end, validation and checkpoints taken
/// out.
void add_rate(Steps steps, const Intervals& pauses, StepFacts& facts) {
  if (steps.empty()) {
    return;
  }
  double samples = 0;
  for (const record::Step& step : steps) {
    samples += static_cast<double>(step.samples);
  }
  const std::int64_t first_ns = step_begin_ns(steps.front());
  const std::int64_t last_ns = steps.back().t_ns + steps.back().duration_ns;
  const double window_s = static_cast<double>(last_ns - first_ns - pauses.overlap_ns(first_ns, last_ns)) * 1e-9;
  if (samples > 0 && window_s > 0) {
    facts.samples_per_s = samples / window_s;
  }
  if (const double period_s = period_of(steps, pauses) * 1e-9; period_s > 0) {
    facts.steps_per_s = static_cast<double>(steps.size()) / period_s;
  }
}

/// The largest micro-batch: the last one of an epoch may be a rest.
}  // namespace

std::optional<std::int64_t> largest_batch(std::span<const record::Step> steps, std::int64_t from) {
  std::int64_t batch = 0;
  for (const record::Step& step : steps) {
    if (step.index >= from) {
      batch = std::max(batch, step.samples / std::max<std::int64_t>(1, step.micro_batches));
    }
  }
  return batch > 0 ? std::optional(batch) : std::nullopt;
}

std::optional<StepFacts> step_facts(const Timeline& timeline) {
  const Steps steady = Steps(timeline.steps).subspan(timeline.first_steady);
  double period_ns = period_of(steady, timeline.pauses);
  double micro_batches = 0;
  for (const record::Step& step : steady) {
    micro_batches += static_cast<double>(std::max<std::int64_t>(1, step.micro_batches));
  }
  double starts_ns = 0;
  if (!steady.empty()) {
    starts_ns = static_cast<double>(
        timeline.starts.overlap_ns(step_begin_ns(steady.front()), steady.back().t_ns + steady.back().duration_ns));
    period_ns += starts_ns;
  }
  if (steady.empty() || period_ns <= 0) {
    return std::nullopt;
  }
  const auto count = static_cast<double>(steady.size());
  StepFacts facts;
  facts.shares = shares_of(steady, timeline.pauses, starts_ns, period_ns);
  facts.micro_batches = micro_batches / count;
  facts.step_s = period_ns * 1e-9 / count;
  add_rate(rated_steps(timeline), timeline.pauses, facts);
  facts.batch_samples = largest_batch(steady);
  if (seen(steady, &record::Step::syncs)) {
    facts.syncs_per_step = sum(steady, &record::Step::syncs) / count;
  }
  return facts;
}

namespace {

/// Calls `visit(step, first of its pass, samples before it)` for every step.
template <typename Visit>
void walk_passes(const Timeline& timeline, std::optional<double> per_pass, Visit visit) {
  double samples = 0;
  double next_pass = 0;
  for (const record::Step& step : timeline.steps) {
    const bool first = per_pass && samples >= next_pass;
    while (per_pass && samples >= next_pass) {
      next_pass += *per_pass;
    }
    visit(step, first, samples);
    samples += static_cast<double>(step.samples);
  }
}

constexpr std::size_t kFewestForBursts = 20;  // below, a tenth of the steps is one or two

}  // namespace

std::optional<double> input_bursts(const Timeline& timeline, std::optional<double> per_pass) {
  const std::size_t half = timeline.steps.size() / 2;
  std::vector<double> waits;
  std::size_t index = 0;
  walk_passes(timeline, per_pass, [&](const record::Step& step, bool first, double) {
    if (index++ >= half && !first) {
      waits.push_back(static_cast<double>(positive(step.input_ns)));
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

std::optional<LaterPasses> later_passes(const Timeline& timeline, double per_pass) {
  std::optional<LaterPasses> later;
  walk_passes(timeline, per_pass, [&](const record::Step& step, bool, double samples) {
    if (samples >= per_pass) {
      later = later ? later : LaterPasses{step.t_ns, 0};
      later->input_s += static_cast<double>(positive(step.input_ns)) * 1e-9;
    }
  });
  return later;
}

double pass_start_wait_s(const Timeline& timeline, double per_pass, std::int64_t workers) {
  std::vector<double> waits;
  for (const record::Step& step : timeline.steps) {
    waits.push_back(static_cast<double>(positive(step.input_ns)));
  }
  if (waits.empty()) {
    return 0;
  }
  const auto middle = waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 2);
  std::nth_element(waits.begin(), middle, waits.end());
  const double usual_ns = *middle;
  double total_ns = 0;
  std::int64_t step_of_pass = 0;
  walk_passes(timeline, per_pass, [&](const record::Step& step, bool first, double) {
    step_of_pass = first ? 0 : step_of_pass + 1;
    if (step_of_pass < workers) {
      total_ns += std::max(0.0, static_cast<double>(positive(step.input_ns)) - usual_ns);
    }
  });
  return total_ns * 1e-9;
}

}  // namespace unidle::diagnose::detail
