#include "unidle/trace/detail/idle.h"

#include <algorithm>
#include <map>

namespace unidle::trace::detail {

namespace {

/// A host that launches nothing for this long does something other than launching: a launch with its Python code and
/// operator takes some ten microseconds, or a few hundred under a profiler that records Python. Own choice.
constexpr double kPause_us = 1000;

/// An idle device starts a kernel some 10 us after the launch call has returned; a longer delay has another cause. Own
/// choice.
constexpr double kLaunchLatency_us = 100;

/// The parts of gaps in which a thread had not yet launched the work that ended them.
struct Pieces {
  GatheredRanges brief;
  GatheredRanges pauses;
  GatheredRanges after_wait;  // brief ones that began while the host waited for the device: nothing was queued
};

/// Whether `at` is in a range, ends included.
bool in_or_at(GatheredRanges& ranges, double at_us) {
  const std::int64_t at = to_ns(at_us);
  return ranges.joined().overlap_ns(at - 1, at + 1) > 0;
}

class Attribution {
 public:
  Attribution(Collector& seen, IdleTime& idle) : seen_(seen), idle_(idle) {
    for (const auto& [number, thread] : seen.threads) {
      if (!main_ || thread.launches > seen.threads.at(*main_).launches) {
        main_ = number;
      }
    }
    if (!seen.steps.empty() && seen.threads.contains(seen.steps.front().thread)) {
      main_ = seen.steps.front().thread;
    }
  }

  void gap(const Span& gap, const Work* next) {
    const Call* call = next == nullptr || next->correlation < 0 ? nullptr : seen_.calls.find(next->correlation);
    if (call == nullptr) {
      host(gap, main_);
      return;
    }
    const double launched = std::clamp(call->begin, gap.begin, gap.end);
    const double returned = std::clamp(call->end, launched, gap.end);
    host({gap.begin, launched}, call->thread);
    seconds_of(*call) += (returned - launched) * kSecondsPerUs;
    const double latency_end = launched > gap.begin ? std::min(gap.end, returned + kLaunchLatency_us) : returned;
    idle_.launch_s += (latency_end - returned) * kSecondsPerUs;
    idle_.queued_s += (gap.end - latency_end) * kSecondsPerUs;
  }

  void finish() {
    for (auto& [number, pieces] : pieces_) {
      share(pieces.brief.joined(), seen_.threads[number], idle_.launch_s, brief_);
      share(pieces.pauses.joined(), seen_.threads[number], idle_.host_s, pauses_);
      share(pieces.after_wait.joined(), seen_.threads[number], idle_.sync_s, after_wait_);
    }
    // Time without events of that thread is attributed to other threads, such as autograd's.
    HostThread any;
    for (auto& [number, thread] : seen_.threads) {
      for (std::size_t kind = 0; kind < kHostWorks; ++kind) {
        any.work.at(kind).add(thread.work.at(kind).joined());
      }
      any.long_launches.add(thread.long_launches.joined());
    }
    GatheredRanges brief;
    GatheredRanges pauses;
    GatheredRanges after_wait;
    share(brief_.joined(), any, idle_.launch_s, brief);
    share(pauses_.joined(), any, idle_.host_s, pauses);
    share(after_wait_.joined(), any, idle_.sync_s, after_wait);
    const bool seen = main_.has_value() && (seen_.launches > 0 || !seen_.operators.empty());
    (seen ? idle_.launch_s : idle_.unseen_s) += total_us(brief.joined()) * kSecondsPerUs;
    (seen ? idle_.host_s : idle_.unseen_s) += total_us(pauses.joined()) * kSecondsPerUs;
    idle_.unnamed_s = seen ? total_us(pauses.joined()) * kSecondsPerUs : 0;
    idle_.sync_s += total_us(after_wait.joined()) * kSecondsPerUs;
  }

 private:
  double& seconds_of(const Call& call) {
    const bool loads = call.kind == HostWork::kLaunch && call.end - call.begin >= kLoadingLaunch_us;
    return call.kind == HostWork::kCopy ? idle_.copy_s : loads ? idle_.compile_s : idle_.launch_s;
  }

  void host(const Span& span, std::optional<std::uint32_t> thread) {
    if (!(span.end > span.begin)) {
      return;
    }
    if (!thread) {
      idle_.unseen_s += (span.end - span.begin) * kSecondsPerUs;
      return;
    }
    Pieces& pieces = pieces_[*thread];
    HostThread& host = seen_.threads[*thread];
    const bool waited = in_or_at(host.of(HostWork::kSync), span.begin) || in_or_at(host.blocking_copies, span.begin);
    (span.end - span.begin >= kPause_us ? pieces.pauses
     : waited                           ? pieces.after_wait
                                        : pieces.brief)
        .add(to_range(span));
  }

  /// Removes from `span` what `thread` did; its own work is added to `own_s`. The rest goes to `left`.
  void share(TimeRanges span, HostThread& thread, double& own_s, GatheredRanges& left) {
    const auto take_ranges = [&](GatheredRanges& ranges, double& seconds) {
      const TimeRanges inside = intersection(span, ranges.joined());
      seconds += total_us(inside) * kSecondsPerUs;
      span = span.minus(inside);
    };
    const auto take = [&](HostWork kind, double& seconds) { take_ranges(thread.of(kind), seconds); };
    const bool waited = &own_s == &idle_.sync_s;
    take(HostWork::kInput, idle_.input_s);
    take(HostWork::kCompile, idle_.compile_s);
    take(HostWork::kAllocator, idle_.allocator_s);
    take(HostWork::kSync, idle_.sync_s);
    take(HostWork::kCopy, waited ? own_s : idle_.copy_s);
    take_ranges(thread.long_launches, waited ? own_s : idle_.compile_s);
    take(HostWork::kLaunch, waited ? own_s : idle_.launch_s);
    take(HostWork::kProfiler, idle_.profiler_s);
    take(HostWork::kOperator, own_s);
    take(HostWork::kProgram, own_s);
    left.add(span);
  }

  Collector& seen_;
  IdleTime& idle_;
  std::optional<std::uint32_t> main_;
  std::map<std::uint32_t, Pieces> pieces_;
  GatheredRanges brief_;
  GatheredRanges pauses_;
  GatheredRanges after_wait_;
};

}  // namespace

IdleTime idle_time(Collector& seen, const std::string& device, const TimeRanges& busy, const Span& window) {
  IdleTime idle;
  const TimeRanges gaps = TimeRanges({to_range(window)}).minus(busy);
  idle.idle_s = total_us(gaps) * kSecondsPerUs;
  Attribution attribution(seen, idle);
  const std::vector<Work>& work = seen.devices.at(device).ordered();
  auto next = work.begin();
  for (const TimeRange& gap : gaps.all()) {
    next = std::find_if(next, work.end(), [&](const Work& one) {
      return to_ns(one.begin) >= gap.end_ns && to_ns(one.end) > to_ns(one.begin);
    });
    attribution.gap(to_span(gap), next == work.end() || gap.end_ns >= to_ns(window.end) ? nullptr : &*next);
  }
  attribution.finish();
  return idle;
}

}  // namespace unidle::trace::detail
