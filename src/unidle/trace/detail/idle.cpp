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
  SpanSet brief;
  SpanSet pauses;
  SpanSet after_wait;  // brief ones that began while the host waited for the device: nothing was queued
};

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
      share(pieces.brief, seen_.threads[number], idle_.launch_s, brief_);
      share(pieces.pauses, seen_.threads[number], idle_.host_s, pauses_);
      share(pieces.after_wait, seen_.threads[number], idle_.sync_s, after_wait_);
    }
    // Time without events of that thread is attributed to other threads, such as autograd's.
    HostThread any;
    for (auto& [number, thread] : seen_.threads) {
      for (std::size_t kind = 0; kind < kHostWorks; ++kind) {
        for (const Span& span : thread.work.at(kind).joined()) {
          any.work.at(kind).add(span.begin, span.end);
        }
      }
    }
    SpanSet brief;
    SpanSet pauses;
    SpanSet after_wait;
    share(brief_, any, idle_.launch_s, brief);
    share(pauses_, any, idle_.host_s, pauses);
    share(after_wait_, any, idle_.sync_s, after_wait);
    const bool seen = main_.has_value() && (seen_.launches > 0 || !seen_.operators.empty());
    (seen ? idle_.launch_s : idle_.unseen_s) += brief.total() * kSecondsPerUs;
    (seen ? idle_.host_s : idle_.unseen_s) += pauses.total() * kSecondsPerUs;
    idle_.sync_s += after_wait.total() * kSecondsPerUs;
  }

 private:
  /// A launch that takes this long on an idle device loads its kernel first.
  double& seconds_of(const Call& call) {
    const bool loads = call.kind == HostWork::kLaunch && call.end - call.begin >= kPause_us;
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
    const bool waited = host.of(HostWork::kSync).holds(span.begin) || host.blocking_copies.holds(span.begin);
    (span.end - span.begin >= kPause_us ? pieces.pauses
     : waited                           ? pieces.after_wait
                                        : pieces.brief)
        .add(span.begin, span.end);
  }

  /// Removes from `span` what `thread` did; its own work is added to `own_s`. The rest goes to `left`.
  void share(SpanSet& span, HostThread& thread, double& own_s, SpanSet& left) {
    const auto take = [&](HostWork kind, double& seconds) {
      SpanSet inside = span.within(thread.of(kind));
      seconds += inside.total() * kSecondsPerUs;
      span = span.minus(inside);
    };
    const bool waited = &own_s == &idle_.sync_s;
    take(HostWork::kInput, idle_.input_s);
    take(HostWork::kCompile, idle_.compile_s);
    take(HostWork::kAllocator, idle_.allocator_s);
    take(HostWork::kSync, idle_.sync_s);
    take(HostWork::kCopy, waited ? own_s : idle_.copy_s);
    take(HostWork::kLaunch, waited ? own_s : idle_.launch_s);
    take(HostWork::kProfiler, idle_.profiler_s);
    take(HostWork::kOperator, own_s);
    take(HostWork::kProgram, own_s);
    for (const Span& rest : span.joined()) {
      left.add(rest.begin, rest.end);
    }
  }

  Collector& seen_;
  IdleTime& idle_;
  std::optional<std::uint32_t> main_;
  std::map<std::uint32_t, Pieces> pieces_;
  SpanSet brief_;
  SpanSet pauses_;
  SpanSet after_wait_;
};

}  // namespace

IdleTime idle_time(Collector& seen, const std::string& device, SpanSet& busy, const Span& window) {
  IdleTime idle;
  SpanSet whole;
  whole.add(window.begin, window.end);
  SpanSet gaps = whole.minus(busy);
  idle.idle_s = gaps.total() * kSecondsPerUs;
  Attribution attribution(seen, idle);
  const std::vector<Work>& work = seen.devices.at(device).ordered();
  auto next = work.begin();
  for (const Span& gap : gaps.joined()) {
    next = std::find_if(next, work.end(), [&](const Work& one) { return one.begin >= gap.end && one.end > one.begin; });
    attribution.gap(gap, next == work.end() || gap.end >= window.end ? nullptr : &*next);
  }
  attribution.finish();
  return idle;
}

}  // namespace unidle::trace::detail
