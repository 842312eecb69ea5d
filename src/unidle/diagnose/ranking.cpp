#include "unidle/diagnose/ranking.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>

#include "unidle/diagnose/rule.h"

namespace unidle::diagnose {

namespace {

/// True when the share is at least half of the general one, if both are known: a small cause does not hide a large one.
bool explains(const Finding& specific, const Finding& general) {
  return !specific.share || !general.share || *specific.share >= *general.share / 2;
}

/// From 1 on; the largest number for a finding that does not lead.
int leading_place(const Finding& finding) {
  const Rule* rule = finding.severity == Severity::kInfo ? nullptr : find_rule(finding.id);
  return rule == nullptr || rule->leads == 0 ? std::numeric_limits<int>::max() : rule->leads;
}

/// True when `general` is a symptom that the rule of `specific` explains.
bool is_symptom_of(const Finding& general, const Finding& specific) {
  const Rule* shown = find_rule(general.id);
  const Rule* cause = find_rule(specific.id);
  if (shown == nullptr || cause == nullptr) {
    return false;
  }
  const std::optional<Symptom> shows = general.shows ? general.shows : shown->shows;
  return shows && std::ranges::find(cause->explains, *shows) != cause->explains.end() &&
         (*shows != Symptom::kCodeBetween || (general.where && general.where == specific.where));
}

/// The largest loss in the measured times; compute when there is none.
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

/// The share of the wall time that removing the cause can win: at most what its bound leaves.
double winnable(const Finding& finding) {
  const double share = finding.share.value_or(-1);
  return finding.speedup_bound ? std::min(share, 1 - 1 / *finding.speedup_bound) : share;
}

/// A cause with a large share of which little can be won is no more than a warning.
Severity severity_of_winnable(const Finding& finding, const Policy& policy) {
  const bool is_known = finding.share && finding.speedup_bound && finding.severity == Severity::kCritical;
  return is_known && winnable(finding) < policy.critical_share ? Severity::kWarning : finding.severity;
}

/// Such a cause stands behind all others.
bool wins_nothing(const Finding& finding, const Policy& policy) {
  return finding.speedup_bound && *finding.speedup_bound < policy.min_bound;
}

}  // namespace

bool leads(const Finding& finding) { return leading_place(finding) < std::numeric_limits<int>::max(); }

void rank(std::vector<Finding>& findings, const Policy& policy) {
  const auto key = [&](const Finding& finding) {
    return std::tuple(leading_place(finding), finding.severity == Severity::kInfo, wins_nothing(finding, policy),
                      -static_cast<int>(severity_of_winnable(finding, policy)), -winnable(finding));
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const Finding& a, const Finding& b) { return key(a) < key(b); });
}

std::vector<std::string> fold(std::vector<Finding>& findings, Language language) {
  std::vector<std::string> folded;
  const auto is_folded = [&](const Finding& finding) { return std::ranges::find(folded, finding.id) != folded.end(); };
  for (Finding& specific : findings) {
    for (const Finding& general : findings) {
      if (is_folded(general) || is_folded(specific) || specific.severity == Severity::kInfo ||
          !is_symptom_of(general, specific) || !explains(specific, general)) {
        continue;
      }
      if (!general.evidence.empty()) {
        specific.evidence.push_back(
            translate(language, "explains {} as well: {}", general.id, general.evidence.front()));
      }
      folded.push_back(general.id);
    }
  }
  std::erase_if(findings, is_folded);
  return folded;
}

namespace {

/// Whether much of the run lies between the calls of the model, and no stack samples show in which lines.
bool hides_code_between(const std::vector<Abstention>& abstained, const Context& context, const Policy& policy) {
  const bool hides = std::any_of(abstained.begin(), abstained.end(), [](const Abstention& abstention) {
    const Rule* rule = find_rule(abstention.id);
    return rule != nullptr && rule->shows == Symptom::kCodeBetween;
  });
  const Signals& signals = context.signals;
  return hides && signals.step &&
         std::min(signals.step->other * context.train.value_or(0), context.on_gpu ? context.idle.value_or(0) : 1.0) >=
             policy.critical_share;
}

}  // namespace

Verdict verdict_of(const std::vector<Finding>& findings, const std::vector<Abstention>& abstained,
                   const Context& context, const Policy& policy) {
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
  if (timeline && timeline->alone && timeline->kernels >= policy.min_kernels &&
      context.signals.device_busy.value_or(0) >= policy.device_full && !warned) {
    return Verdict::kHealthy;  // few steps suffice: the trace has every kernel
  }
  if (!context.input) {
    return Verdict::kUnknown;
  }
  if (warned) {
    return by_time(context);
  }
  // No rule named a cause, but the wait exists: a run is not healthy only because a rule abstained.
  if (*context.input >= policy.unexplained_share) {
    return Verdict::kInputBound;
  }
  if (!context.transfer) {
    return Verdict::kUnknown;  // a log that states only the wait for input
  }
  if (*context.transfer >= policy.unexplained_share) {
    return Verdict::kTransferBound;
  }
  if (context.behind && *context.starved - *context.sync >= policy.unexplained_share) {
    return Verdict::kUnknown;  // no kernel runs, and the device does not wait for the host
  }
  if (context.units_in_use.value_or(1) < policy.far_from_full) {
    return Verdict::kComputeBound;  // busy, but with kernels that leave most of the device unused
  }
  return hides_code_between(abstained, context, policy) ? Verdict::kUnknown : Verdict::kHealthy;
}

}  // namespace unidle::diagnose
