#include "unidle/account/timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "unidle/base/stats.h"
#include "unidle/record/note_types.h"
#include "unidle/trace/recorded.h"

namespace unidle::account {

namespace {

/// With fewer steps before a profiler's window there is no rate.
constexpr std::size_t kFewestRated = 5;

std::int64_t positive(const std::optional<std::int64_t>& value) { return std::max<std::int64_t>(0, value.value_or(0)); }

std::optional<std::int64_t> busiest_process(const std::vector<record::Step>& steps) {
  std::map<std::int64_t, std::size_t> count;
  for (auto at = steps.begin(); at != steps.end();) {
    const auto next = std::find_if(at, steps.end(), [&](const auto& step) { return step.process != at->process; });
    count[at->process] += static_cast<std::size_t>(next - at);
    at = next;
  }
  const auto most =
      std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == count.end() ? std::nullopt : std::optional(most->first);
}

/// Over steps of processes that train at the same time, since earlier or later ones have other rates. Steps count by
/// their middles, so that ranks that begin slightly apart count equally.
double rank_factor_of(const std::vector<record::Step>& all, const std::vector<record::Step>& own) {
  double samples = 0;
  double own_samples = 0;
  const std::int64_t end_ns = own.back().t_ns + own.back().duration_ns;
  for (const record::Step& step : all) {
    const std::int64_t middle_ns = step.t_ns + step.duration_ns / 2;
    if (middle_ns >= own.front().t_ns && middle_ns <= end_ns) {
      samples += static_cast<double>(step.samples);
      own_samples += step.process == own.front().process ? static_cast<double>(step.samples) : 0;
    }
  }
  return own_samples > 0 ? samples / own_samples : 1;
}

/// Sets begin and end from the record's meta values, else from its first and last timestamps.
void set_ends(const RunData& run, Timeline& timeline) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = 0;
  const auto see = [&](std::int64_t begin, std::int64_t end) {
    first = std::min(first, begin);
    last = std::max(last, end);
  };
  for (const record::Step& step : run.steps) {
    see(begin_with_input_ns(step), step.t_ns + step.duration_ns);
  }
  for (const record::Span& span : run.spans) {
    see(span.t_ns, span.t_ns + span.duration_ns);
  }
  for (const auto& [series, points] : run.series) {
    if (!points.empty()) {
      see(points.front().t_ns, points.back().t_ns);
    }
  }
  const bool nothing = first == std::numeric_limits<std::int64_t>::max();
  timeline.begin_ns = run.meta_time(record::meta::kStartNs).value_or(nothing ? 0 : first);
  timeline.end_ns = std::max(timeline.begin_ns, run.meta_time(record::meta::kEndNs).value_or(last));
}

void set_counted(const RunData& run, Timeline& timeline) {
  const std::size_t all = timeline.steps.size();
  timeline.first_counted = warm_up_steps(all);
  timeline.end_counted = all;
  timeline.rated = all > 0;
  const auto since = timeline.process ? trace::attached_since(run.notes, *timeline.process) : std::nullopt;
  if (!since) {
    return;
  }
  const auto slowed = [&](const record::Step& step) { return step.t_ns + step.duration_ns > *since; };
  const auto before = static_cast<std::size_t>(std::find_if(timeline.steps.begin(), timeline.steps.end(), slowed) -
                                               timeline.steps.begin());
  timeline.window = true;
  timeline.rated = before - warm_up_steps(before) >= kFewestRated;
  if (timeline.rated) {
    timeline.first_counted = warm_up_steps(before);
    timeline.end_counted = before;
  }
}

/// The begins. Spans that follow each other without a gap count as one: the files of a checkpoint are saved one after
/// the other.
std::vector<std::int64_t> begins_of(const RunData& run, std::string_view kind, const Timeline& timeline) {
  std::vector<std::int64_t> begins_ns;
  std::optional<std::int64_t> end_ns;
  for (const record::Span& span : run.spans) {
    if (span.kind == kind && (!timeline.process || span.process == *timeline.process)) {
      if (end_ns != span.t_ns) {
        begins_ns.push_back(span.t_ns);
      }
      end_ns = span.t_ns + span.duration_ns;
    }
  }
  return begins_ns;
}

/// The number of steps between two of these times that two thirds of them have in common; nothing for a single one.
std::optional<std::int64_t> steps_between(const std::vector<std::int64_t>& times_ns, const Timeline& timeline) {
  std::map<std::int64_t, std::size_t> distances;
  std::int64_t before = 0;
  for (const std::int64_t time_ns : times_ns) {
    const auto begins_later = std::partition_point(timeline.steps.begin(), timeline.steps.end(),
                                                   [&](const record::Step& step) { return step.t_ns < time_ns; });
    const std::int64_t begun = begins_later - timeline.steps.begin();
    ++distances[begun - before];
    before = begun;
  }
  const auto most = std::max_element(distances.begin(), distances.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const bool regular = times_ns.size() > 1 && most->first > 0 && 3 * most->second >= 2 * times_ns.size();
  return regular ? std::optional(most->first) : std::nullopt;
}

/// The spans of one kind of the reference process.
TimeRanges spans_of(const RunData& run, std::string_view kind, const Timeline& timeline) {
  std::vector<TimeRange> found;
  for (const record::Span& span : run.spans) {
    if (span.kind == kind && (!timeline.process || span.process == *timeline.process)) {
      found.push_back(
          {std::max(span.t_ns, timeline.begin_ns), std::min(span.t_ns + span.duration_ns, timeline.end_ns)});
    }
  }
  return TimeRanges(std::move(found));
}

/// Whether the program made an optimiser.
bool prepares_to_train(const RunData& run) {
  bool made = false;
  record::each_note<record::NoteType::kOptimizer>(run.notes, [&](const auto&) { made = true; });
  return made;
}

/// The number of first steps, within warm-up, that take many times as long as the usual counted one: they compile,
/// allocate or open files, and belong to the start-up.
std::size_t start_up_steps(const Timeline& timeline) {
  constexpr double kTimesAsLong = 100;
  std::vector<double> usual;
  for (const record::Step& step : timeline.counted()) {
    usual.push_back(static_cast<double>(step.duration_ns));
  }
  const double many = usual.empty() ? 0 : kTimesAsLong * median(usual);
  std::size_t count = 0;
  while (many > 0 && count < timeline.first_counted && static_cast<double>(timeline.steps[count].duration_ns) >= many) {
    ++count;
  }
  return count;
}

void set_ranges(const RunData& run, Timeline& timeline) {
  // Programs often save the best model before the validation span ends.
  timeline.checkpoint = spans_of(run, "checkpoint", timeline);
  timeline.validate = spans_of(run, "validate", timeline).minus(timeline.checkpoint);
  timeline.pauses = timeline.validate.plus(timeline.checkpoint);
  std::vector<TimeRange> steps;
  steps.reserve(timeline.steps.size());
  for (const record::Step& step : std::span(timeline.steps).subspan(start_up_steps(timeline))) {
    steps.push_back({std::max(begin_with_input_ns(step), timeline.begin_ns),
                     std::min(step.t_ns + step.duration_ns, timeline.end_ns)});
  }
  const TimeRanges in_steps(std::move(steps));
  timeline.training = in_steps.minus(timeline.pauses);
  TimeRanges startup = spans_of(run, "startup", timeline);
  if (!timeline.training.empty()) {
    startup = startup.plus(TimeRanges({{timeline.begin_ns, timeline.training.all().front().begin_ns}}));
  } else if (prepares_to_train(run)) {
    startup = TimeRanges({{timeline.begin_ns, timeline.end_ns}});
  }
  timeline.startup = startup.minus(timeline.training).minus(timeline.pauses);
}

}  // namespace

std::size_t warm_up_steps(std::size_t steps) { return steps < 2 ? 0 : std::clamp<std::size_t>(steps / 4, 1, 10); }

std::int64_t parts_ns(const record::Step& step) {
  return positive(step.input_ns) + positive(step.transfer_ns) + positive(step.forward_ns) + positive(step.backward_ns) +
         positive(step.optimizer_ns) + positive(step.sync_ns);
}

std::int64_t begin_with_input_ns(const record::Step& step) {
  return step.t_ns - std::max<std::int64_t>(0, parts_ns(step) - step.duration_ns);
}

Timeline make_timeline(const RunData& run) {
  Timeline timeline;
  timeline.process = busiest_process(run.steps);
  if (timeline.process) {
    timeline.steps.reserve(run.steps.size());
    std::copy_if(run.steps.begin(), run.steps.end(), std::back_inserter(timeline.steps),
                 [&](const record::Step& step) { return step.process == *timeline.process; });
    timeline.rank_factor = rank_factor_of(run.steps, timeline.steps);
  }
  set_ends(run, timeline);
  set_counted(run, timeline);
  const std::vector<std::int64_t> validated_ns = begins_of(run, "validate", timeline);
  timeline.validations = static_cast<std::int64_t>(validated_ns.size());
  timeline.dry_runs = std::ranges::count_if(validated_ns, [&](std::int64_t t_ns) { return timeline.is_dry_run(t_ns); });
  const std::vector<std::int64_t> saved_ns = begins_of(run, "checkpoint", timeline);
  timeline.checkpoints = static_cast<std::int64_t>(saved_ns.size());
  timeline.checkpoint_every = steps_between(saved_ns, timeline);
  timeline.spans_seen = !run.spans.empty() || !run.steps.empty();
  set_ranges(run, timeline);
  return timeline;
}

}  // namespace unidle::account
