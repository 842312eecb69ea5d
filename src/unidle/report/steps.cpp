#include "unidle/report/steps.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace unidle::report {

namespace {

double seconds_of(const std::optional<std::int64_t>& ns) { return static_cast<double>(ns.value_or(0)) / 1e9; }

Parts reported_parts(const record::Step& step) {
  Parts parts{};
  parts[kInput] = seconds_of(step.input_ns);
  parts[kTransfer] = seconds_of(step.transfer_ns);
  parts[kCompute] = seconds_of(step.forward_ns) + seconds_of(step.backward_ns);
  parts[kSync] = seconds_of(step.sync_ns);
  parts[kOptimizer] = seconds_of(step.optimizer_ns);
  return parts;
}

/// Parts may overlap one another by a little (a wait inside the forward pass): never more than the wall time.
Parts fit_parts(Parts parts, double wall_s) {
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  if (sum > wall_s) {
    const double scale = sum > 0 ? wall_s / sum : 0;
    for (double& part : parts) {
      part *= scale;
    }
  } else {
    parts[kOther] = wall_s - sum;
  }
  return parts;
}

/// An observer that thins itself out times the passes of some steps only.
bool seen_in_full(const record::Step& step) { return step.forward_ns || step.backward_ns; }

/// What a step leaves unexplained that was not seen in full is divided as in those that were.
void fill_gaps(const std::vector<record::Step>& steps, std::vector<Cycle>& all) {
  Parts full{};
  std::size_t count = 0;
  bool input_in_all = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (seen_in_full(steps[i])) {
      ++count;
      std::transform(full.begin(), full.end(), all[i].parts.begin(), full.begin(), std::plus<>());
    } else {
      input_in_all = input_in_all || steps[i].input_ns.has_value();
    }
  }
  full[kTransfer] = full[kSync] = 0;  // known of every step
  full[kInput] = input_in_all ? 0 : full[kInput];
  const double whole = std::accumulate(full.begin(), full.end(), 0.0);
  if (count == 0 || count == steps.size() || whole <= 0) {
    return;
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!seen_in_full(steps[i])) {
      const double left = std::exchange(all[i].parts[kOther], 0);
      std::transform(full.begin(), full.end(), all[i].parts.begin(), all[i].parts.begin(),
                     [&](double share, double known) { return known + left * share / whole; });
    }
  }
}

struct Stretch {
  std::int64_t begin;
  std::int64_t end;
};

std::vector<Stretch> merged_spans(const RunData& run) {
  std::vector<Stretch> merged;
  for (const auto& span : run.spans) {
    const Stretch stretch{span.t_ns, span.t_ns + span.duration_ns};
    if (!merged.empty() && stretch.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, stretch.end);
    } else {
      merged.push_back(stretch);
    }
  }
  return merged;
}

double overlap_s(const std::vector<Stretch>& spans, std::size_t& from, std::int64_t begin, std::int64_t end) {
  while (from < spans.size() && spans[from].end <= begin) {
    ++from;
  }
  double sum = 0;
  for (std::size_t i = from; i < spans.size() && spans[i].begin < end; ++i) {
    sum += static_cast<double>(std::min(end, spans[i].end) - std::max(begin, spans[i].begin)) / 1e9;
  }
  return sum;
}

}  // namespace

std::vector<Cycle> cycles(const RunData& run) {
  std::vector<Cycle> out;
  out.reserve(run.steps.size());
  const std::vector<Stretch> spans = merged_spans(run);
  std::size_t from = 0;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const record::Step& step = run.steps[i];
    const Parts parts = reported_parts(step);
    Cycle cycle;
    cycle.begin_ns = step.t_ns;
    if (i + 1 < run.steps.size()) {
      cycle.end_ns = run.steps[i + 1].t_ns;
    } else {
      cycle.end_ns = step.t_ns + step.duration_ns;
    }
    const double whole = static_cast<double>(cycle.end_ns - cycle.begin_ns) / 1e9;
    cycle.wall_s = std::max(0.0, whole - overlap_s(spans, from, cycle.begin_ns, cycle.end_ns));
    cycle.samples = static_cast<double>(step.samples) * run.rank_factor;
    cycle.parts = fit_parts(parts, cycle.wall_s);
    out.push_back(cycle);
  }
  fill_gaps(run.steps, out);
  return out;
}

std::size_t warm_up_steps(std::size_t steps) { return std::min(std::clamp<std::size_t>(steps / 20, 3, 20), steps / 2); }

Phases phases(const RunData& run, const std::vector<Cycle>& all) {
  Phases out;
  bool startup_seen = false;
  for (const auto& span : run.spans) {
    const double duration = static_cast<double>(span.duration_ns) / 1e9;
    if (span.kind == "startup") {
      out.startup += duration;
      startup_seen = true;
    } else if (span.kind == "validate") {
      out.validate += duration;
    } else if (span.kind == "checkpoint") {
      out.checkpoint += duration;
    }
  }
  for (const Cycle& cycle : all) {
    out.train += cycle.wall_s;
  }
  if (!startup_seen && !all.empty() && all.front().begin_ns > run.start_ns) {
    out.startup = static_cast<double>(all.front().begin_ns - run.start_ns) / 1e9;
  }
  out.other = std::max(0.0, run.wall_s() - out.startup - out.train - out.validate - out.checkpoint);
  return out;
}

std::array<bool, kPartCount> parts_seen(const RunData& run) {
  std::array<bool, kPartCount> seen{};
  for (const auto& step : run.steps) {
    seen[kInput] = seen[kInput] || step.input_ns.has_value();
    seen[kTransfer] = seen[kTransfer] || step.transfer_ns.has_value();
    seen[kCompute] = seen[kCompute] || step.forward_ns.has_value() || step.backward_ns.has_value();
    seen[kSync] = seen[kSync] || step.sync_ns.has_value();
    seen[kOptimizer] = seen[kOptimizer] || step.optimizer_ns.has_value();
  }
  seen[kOther] = true;
  return seen;
}

std::optional<double> series_mean(const RunData& run, std::string_view name, std::int64_t from_ns, std::int64_t to_ns) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto* points : run.points(name)) {
    for (const auto& point : *points) {
      if (point.t_ns >= from_ns && point.t_ns <= to_ns) {
        sum += point.value;
        ++count;
      }
    }
  }
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

}  // namespace unidle::report
