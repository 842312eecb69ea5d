#include "unidle/diagnose/ranking.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "unidle/diagnose/rule.h"

namespace unidle::diagnose {

namespace {

/// A trace of fewer kernels is of no step; what is between them says nothing. Own choice.
constexpr std::int64_t kFewKernels = 10;

constexpr std::array<std::string_view, 4> kLeaders = {"run-failed", "run-timed-out", "out-of-memory", "device-unused"};

/// The specific cause, and the general one that it explains.
constexpr std::array<std::pair<std::string_view, std::string_view>, 29> kFolds = {{
    {"run-timed-out", "run-failed"},                // the limit ended it, not a fault
    {"loader-respawn", "loader-too-few-workers"},   // they are few only while they start
    {"loader-respawn", "loader-shallow-prefetch"},  // the queue is empty because it is new
    {"loader-per-row", "loader-no-workers"},        // workers would fetch rows one by one as well
    {"loader-per-row", "loader-too-few-workers"},   // and more of them too
    {"loader-per-row", "loader-shallow-prefetch"},
    {"cpu-restricted", "loader-too-few-workers"},      // there are no CPUs for more workers
    {"cpu-restricted", "loader-oversubscribed"},       // the workers are too many only for what the job may use
    {"recomputed-features", "dataset-slow-sample"},    // the sample is slow because it is computed again
    {"cpu-restricted", "dataset-slow-sample"},         // with the machine's other CPUs it would not be too slow
    {"loader-oversubscribed", "dataset-slow-sample"},  // what a sample costs shows when workers do not take turns
    {"storage-bound", "loader-too-few-workers"},       // workers are busy waiting
    {"storage-bound", "dataset-slow-sample"},
    {"storage-bound", "loader-shallow-prefetch"},
    {"dataset-heavy-tail", "loader-shallow-prefetch"},  // the bursts are the slow samples
    {"dataset-heavy-tail", "loader-too-few-workers"},   // workers are busy with a few samples
    {"device-unused", "precision-fp32"},                // about a device that the run should not be on
    {"device-unused", "layout-not-channels-last"},
    {"device-unused", "batch-too-small"},
    {"device-unused", "optimizer-not-fused"},
    {"device-unused", "accumulation-excess"},
    {"allocator-retries", "memory-nearly-full"},
    {"out-of-memory", "memory-nearly-full"},
    {"loader-too-few-workers", "idle-for-input"},  // why there is no batch
    {"loader-oversubscribed", "idle-for-input"},
    {"loader-respawn", "idle-for-input"},
    {"loader-shallow-prefetch", "idle-for-input"},
    {"dataset-slow-sample", "idle-for-input"},
    {"storage-bound", "idle-for-input"},
}};

/// By half at least, where both shares are known: a small cause does not hide a large one.
bool explains(const Finding& specific, const Finding& general) {
  return !specific.share || !general.share || *specific.share >= *general.share / 2;
}

std::size_t leader_place(const Finding& finding) {
  if (finding.severity == Severity::kInfo) {
    return kLeaders.size();
  }
  return static_cast<std::size_t>(std::find(kLeaders.begin(), kLeaders.end(), finding.id) - kLeaders.begin());
}

auto find_id(std::vector<Finding>& findings, std::string_view id) {
  return std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) { return finding.id == id; });
}

/// The largest loss that the time itself shows, compute when there is none.
Verdict by_time(const Context& context) {
  const std::array<std::pair<double, Verdict>, 6> parts = {{
      {context.computing.value_or(context.compute.value_or(0)), Verdict::kComputeBound},
      {context.input.value_or(0), Verdict::kInputBound},
      {context.transfer.value_or(0), Verdict::kTransferBound},
      {std::min(context.sync.value_or(0), context.idle.value_or(1)), Verdict::kSyncBound},
      {context.validate.value_or(0), Verdict::kValidationBound},
      {context.startup.value_or(0) + context.checkpoint.value_or(0), Verdict::kOverheadBound},
  }};
  const auto largest =
      std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return largest->first > 0 ? largest->second : Verdict::kUnknown;
}

}  // namespace

bool leads(const Finding& finding) { return leader_place(finding) < kLeaders.size(); }

void rank(std::vector<Finding>& findings) {
  const auto key = [](const Finding& finding) {
    return std::tuple(leader_place(finding), -static_cast<int>(finding.severity), -finding.share.value_or(-1));
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const Finding& a, const Finding& b) { return key(a) < key(b); });
}

std::vector<std::string> fold(std::vector<Finding>& findings, Language language) {
  std::vector<std::string> folded;
  for (const auto& [specific, general] : kFolds) {
    const auto into = find_id(findings, specific);
    const auto from = find_id(findings, general);
    if (into == findings.end() || from == findings.end() || into->severity == Severity::kInfo ||
        !explains(*into, *from)) {
      continue;
    }
    if (!from->evidence.empty()) {
      into->evidence.push_back(translate(language, "explains {} as well: {}", from->id, from->evidence.front()));
    }
    folded.push_back(from->id);
    findings.erase(from);
  }
  return folded;
}

Verdict verdict_of(const std::vector<Finding>& findings, const Context& context, const Policy& policy) {
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kInfo) {
      continue;
    }
    const Rule* rule = find_rule(finding.id);
    const Verdict verdict = finding.verdict.value_or(rule == nullptr ? Verdict::kUnknown : rule->verdict);
    if (verdict != Verdict::kUnknown) {
      return verdict;
    }
  }
  const bool warned = !findings.empty() && findings.front().severity != Severity::kInfo;
  const auto& timeline = context.signals.timeline;
  if (timeline && timeline->alone && timeline->kernels >= kFewKernels &&
      context.signals.device_busy.value_or(0) >= policy.device_full && !warned) {
    return Verdict::kHealthy;  // however few the steps: the trace has every kernel
  }
  if (!context.input) {
    return Verdict::kUnknown;
  }
  if (warned) {
    return by_time(context);
  }
  // No rule could name a cause, but the waiting is there: the run is not healthy only because a rule abstained.
  if (*context.input >= policy.unexplained_share) {
    return Verdict::kInputBound;
  }
  if (!context.transfer) {
    return Verdict::kUnknown;  // a log that states the wait for input alone
  }
  if (*context.transfer >= policy.unexplained_share) {
    return Verdict::kTransferBound;
  }
  if (context.behind && *context.starved - *context.sync >= policy.unexplained_share) {
    return Verdict::kUnknown;  // no kernel runs, and the host is not what it waits for
  }
  if (context.units_in_use.value_or(1) < policy.far_from_full) {
    return Verdict::kComputeBound;  // busy, with kernels that leave most of the device unused
  }
  return Verdict::kHealthy;
}

}  // namespace unidle::diagnose
