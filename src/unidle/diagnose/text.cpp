#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "unidle/base/terminal.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/diagnose/ranking.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose {

namespace {

constexpr std::size_t kMostFindings = 5;
constexpr int kNarrowest = 40;
constexpr double kBusy = 0.6;  // a healthy run below this is called "no cause found", not "nothing holds it up"

struct Style {
  int width;
  bool colour;

  std::string paint(const char* code, const std::string& text) const {
    const bool ends_line = !text.empty() && text.back() == '\n';
    const std::string inside = text.substr(0, text.size() - (ends_line ? 1 : 0));
    return colour ? fmt::format("\x1b[{}m{}\x1b[0m{}", code, inside, ends_line ? "\n" : "") : text;
  }
  /// Wrapped and indented as a block; `mark` stands before the first line.
  std::string block(int indent, const std::string& mark, const std::string& text) const {
    const std::string pad(static_cast<std::size_t>(indent), ' ');
    const int inner = indent + static_cast<int>(mark.size());
    std::string body = wrap(text, std::max(width, kNarrowest) - inner, 0);
    for (std::size_t at = 0; (at = body.find('\n', at)) != std::string::npos; ++at) {
      body.insert(at + 1, std::string(static_cast<std::size_t>(inner), ' '));
    }
    return pad + mark + body + "\n";
  }
};

std::string device_name(const Diagnosis& diagnosis) {
  if (diagnosis.device.kind == "cpu") {
    return "CPU";
  }
  return diagnosis.device.kind == "unknown" ? "device" : "GPU";
}

std::string bound_text(const Finding& finding) {
  return finding.speedup_bound ? fmt::format("at best {:.1f}x", *finding.speedup_bound) : "";
}

const Finding* strongest(const Diagnosis& diagnosis) {
  const bool has = !diagnosis.findings.empty() && diagnosis.findings.front().severity != Severity::kInfo;
  return has ? &diagnosis.findings.front() : nullptr;
}

std::string input_sentence(const Diagnosis& diagnosis, const Finding* finding) {
  const std::string wait =
      diagnosis.step ? fmt::format("waits {} of each step", format_share(diagnosis.step->input)) : "waits";
  std::string who = "for data";
  if (finding != nullptr && finding->id == "loader-no-workers") {
    who = "for data that one thread makes";
  } else if (finding != nullptr && finding->id == "loader-too-few-workers") {
    who = "for data from too few workers";
  } else if (finding != nullptr && finding->id == "recomputed-features") {
    who = "for sample work that is done again in every epoch";
  }
  return fmt::format("Your {} {} {}", device_name(diagnosis), wait, who);
}

std::string wall_share(const Diagnosis& diagnosis, double seconds) {
  const PhaseTimes& time = diagnosis.time;
  const double wall = time.startup + time.train + time.validate + time.checkpoint + time.other;
  return format_share(wall > 0 ? seconds / wall : 0);
}

std::string verdict_sentence(const Diagnosis& diagnosis, const Finding* finding) {
  const StepShares step = diagnosis.step.value_or(StepShares{});
  const std::string device = device_name(diagnosis);
  switch (diagnosis.verdict) {
    case Verdict::kHealthy:
      if (diagnosis.device.busy && *diagnosis.device.busy < kBusy) {
        return fmt::format("No cause was found: your {} is {} busy while it trains", device,
                           format_share(*diagnosis.device.busy));
      }
      return diagnosis.device.busy ? fmt::format("Nothing holds this run up: your {} is {} busy while it trains",
                                                 device, format_share(*diagnosis.device.busy))
                                   : "Nothing holds this run up";
    case Verdict::kInputBound: return input_sentence(diagnosis, finding);
    case Verdict::kTransferBound:
      return fmt::format("Your {} waits {} of each step for copies", device, format_share(step.transfer));
    case Verdict::kSyncBound:
      return fmt::format("Your host and {} wait for each other {} of each step", device, format_share(step.sync));
    case Verdict::kLaunchBound:
      return fmt::format("Your {} is done before it gets new work: its steps are too small", device);
    case Verdict::kComputeBound:
      return fmt::format("Your {} computes {} of each step, slower than it could", device, format_share(step.compute));
    case Verdict::kValidationBound:
      return fmt::format("Your run spends {} of its time on validation",
                         wall_share(diagnosis, diagnosis.time.validate));
    case Verdict::kOverheadBound:
      return fmt::format("Your run spends {} of its time on start-up and checkpoints",
                         wall_share(diagnosis, diagnosis.time.startup + diagnosis.time.checkpoint));
    case Verdict::kDeviceUnused: return "A GPU is there or was asked for, and your model runs on the CPU";
    case Verdict::kFailed:
      return diagnosis.outcome == Outcome::kTimedOut ? "The time limit ended the run" : "The run failed";
    case Verdict::kUnknown: return "This record does not show what the run spent its time on";
  }
  return "";
}

/// The answer: what it waits for, what to change, and how much that can give at most.
std::string headline(const Diagnosis& diagnosis) {
  const Finding* finding = strongest(diagnosis);
  std::string text = verdict_sentence(diagnosis, finding);
  if (finding == nullptr) {
    return text + ".";
  }
  if (diagnosis.verdict == Verdict::kFailed) {
    const auto& evidence = finding->evidence;
    return evidence.empty() ? text + "."
                            : text + ": " + evidence.at(std::min<std::size_t>(1, evidence.size() - 1)) + ".";
  }
  const Fix* fix = finding->fixes.empty() ? nullptr : &finding->fixes.front();
  if (fix != nullptr && !fix->to.is_null()) {
    const std::string to = fix->to.is_string() ? fix->to.get<std::string>() : fix->to.dump();
    text += fmt::format(": set {} to {}", fix->knob, to);
    if (const std::string bound = bound_text(*finding); !bound.empty()) {
      text += ", " + bound;
    }
  }
  return text + ".";
}

std::string value_text(const nlohmann::json& value, const char* unknown) {
  if (value.is_null()) {
    return unknown;
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string fix_text(const Finding& finding, const Fix& fix) {
  std::string text = fmt::format("{}: {} -> {} ({})", fix.knob, value_text(fix.from, "?"),
                                 value_text(fix.to, "yours to find"), to_string(fix.fix_class));
  if (&fix == &finding.fixes.front() && finding.where) {
    text += " at " + *finding.where;
  }
  return text + ": " + fix.how;
}

std::string finding_text(const Finding& finding, std::size_t number, const Style& style) {
  const Rule* rule = find_rule(finding.id);
  std::string head = rule == nullptr ? finding.id : fmt::format("{} [{}]", rule->title, finding.id);
  head += ": " + to_string(finding.severity);
  if (finding.share) {
    head += fmt::format(", {} of the wall time", format_share(*finding.share));
  }
  if (const std::string bound = bound_text(finding); !bound.empty()) {
    head += ", " + bound;
  }
  const char* code = finding.severity == Severity::kCritical  ? "31;1"
                     : finding.severity == Severity::kWarning ? "33;1"
                                                              : "1";
  std::string out = style.paint(code, style.block(0, fmt::format("{}. ", number), head));
  for (const std::string& evidence : finding.evidence) {
    out += style.block(3, "- ", evidence);
  }
  for (const Fix& fix : finding.fixes) {
    out += style.block(3, "=> ", fix_text(finding, fix));
  }
  if (finding.fixes.empty()) {
    if (finding.where) {
      out += style.block(3, "at ", *finding.where);
    }
    if (rule != nullptr) {
      out += style.block(3, "=> ", rule->proposes);
    }
  }
  return out;
}

/// Nothing is nothing, not "0.0 us".
std::string duration(double seconds) { return seconds < 5e-4 ? "0 s" : format_seconds(seconds); }

std::string numbers(const Diagnosis& diagnosis, const Style& style) {
  const PhaseTimes& time = diagnosis.time;
  std::string out = style.block(
      0, "",
      fmt::format("Time: start-up {}, training {}, validation {}, checkpoints {}, other {}.", duration(time.startup),
                  duration(time.train), duration(time.validate), duration(time.checkpoint), duration(time.other)));
  if (diagnosis.step) {
    const StepShares& step = *diagnosis.step;
    out += style.block(0, "",
                       fmt::format("Step: input {}, transfer {}, compute {}, host waits {}, optimizer {}, other {}.",
                                   format_share(step.input), format_share(step.transfer), format_share(step.compute),
                                   format_share(step.sync), format_share(step.optimizer), format_share(step.other)));
  }
  if (diagnosis.samples_per_s) {
    out += style.block(0, "", fmt::format("Speed: {} samples/s.", format_number(*diagnosis.samples_per_s)));
  }
  return out;
}

/// What was looked at and is no cause.
std::string fine(const Diagnosis& diagnosis, const Style& style) {
  std::set<std::string> named(diagnosis.folded.begin(), diagnosis.folded.end());
  for (const Finding& finding : diagnosis.findings) {
    named.insert(finding.id);
  }
  for (const Abstention& abstention : diagnosis.abstained) {
    named.insert(abstention.id);
  }
  std::string topics;
  for (const Rule* rule : all_rules()) {
    if (!named.contains(rule->id)) {
      topics += (topics.empty() ? "" : ", ") + rule->topic;
    }
  }
  return topics.empty() ? "" : "\n" + style.block(0, "", "Fine: " + topics + ".");
}

std::string unseen(const Diagnosis& diagnosis, const Style& style) {
  if (diagnosis.abstained.empty()) {
    return "";
  }
  std::string out = "\nNot seen:\n";
  for (const Abstention& abstention : diagnosis.abstained) {
    out += style.block(2, "- ", abstention.id + ": " + abstention.missing);
  }
  return out;
}

}  // namespace

std::string to_text(const Diagnosis& diagnosis, int width, bool colour) {
  const Style style{width, colour};
  std::string out = style.paint("1", style.block(0, "", headline(diagnosis))) + "\n" + numbers(diagnosis, style);
  const std::size_t shown = std::min(kMostFindings, diagnosis.findings.size());
  for (std::size_t i = 0; i < shown; ++i) {
    out += "\n" + finding_text(diagnosis.findings[i], i + 1, style);
  }
  if (diagnosis.findings.size() > shown) {
    out += fmt::format("\n{} more with --format json.\n", diagnosis.findings.size() - shown);
  }
  return out + fine(diagnosis, style) + unseen(diagnosis, style);
}

}  // namespace unidle::diagnose
