#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/base/layout.h"
#include "unidle/base/printable.h"
#include "unidle/base/terminal.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/detail/text_style.h"
#include "unidle/diagnose/detail/try_command.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/diagnose/rule.h"
#include "unidle/knobs/changed_lines.h"
#include "unidle/language/sentence.h"

namespace unidle::diagnose {

namespace {

using detail::Style;

constexpr std::size_t kMostFindings = 5;
constexpr std::size_t kMostRanks = 8;

std::string reason_text(const knobs::Change& fix, const Style& style) {
  return fix.depends.empty()
             ? fix.reason
             : fix.reason + style.say("; depends on {}", translate_sentence(style.language, fix.depends));
}

/// The program's own words, where they stand, and unidle's name of the knob.
std::string in_program_text(const knobs::Change& fix, const Style& style) {
  const knobs::InProgram& change = *fix.in_program;
  const std::string place = change.where.empty() ? "" : ", " + change.where;
  const std::string from =
      change.after.empty() && fix.from && fix.to ? fmt::format(": {} -> {}", *fix.from, *fix.to) : "";
  return fmt::format("{}{} [{}{}, {}]{}{}", in_words(change, style.language), place, fix.knob, from,
                     style.word(to_string(fix.knob_class)), style.word(": "), reason_text(fix, style));
}

/// The lines before and after, moved left together.
std::string lines_text(const knobs::InProgram& change, const Style& style) {
  const auto indent_of = [](const std::string& line) { return std::min(line.find_first_not_of(" \t"), line.size()); };
  std::size_t indent = std::string::npos;
  for (const auto* lines : {&change.before, &change.after}) {
    for (const std::string& line : *lines) {
      indent = line.empty() ? indent : std::min(indent, indent_of(line));
    }
  }
  std::string out;
  const auto moved = [indent](const std::vector<std::string>& lines, std::size_t i) {
    return i < lines.size() ? std::string_view(lines[i]).substr(std::min(indent, lines[i].size())) : "";
  };
  const auto add = [&](const std::vector<std::string>& lines, const std::vector<std::string>& others, const char* mark,
                       const char* code) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      out += style.paint(
          code, fmt::format("      {} {}\n", mark, printable_line(knobs::excerpt(moved(lines, i), moved(others, i)))));
    }
  };
  add(change.before, change.after, change.after.empty() ? "|" : "-", change.after.empty() ? "2" : "31");
  add(change.after, change.before, "+", "32");
  return out;
}

std::string fix_text(const Finding& finding, const knobs::Change& fix, const Style& style) {
  if (fix.in_program) {
    return in_program_text(fix, style);
  }
  if (fix.in_code) {
    const bool first = &fix == &finding.fixes.front();
    return fix.reason + (first && finding.where ? style.say("; see {}", *finding.where) : "");
  }
  std::string text = fix.knob + ": ";
  if (fix.from) {
    text += fmt::format("{} -> ", *fix.from);
  }
  text += fmt::format("{} ({})", fix.to ? fix.to->to_text() : style.word("yours to find"),
                      style.word(to_string(fix.knob_class)));
  if (!fix.written.empty()) {
    text += style.say(" at {}", fix.written_at) + " (" + fix.written + ")";
  } else if (&fix == &finding.fixes.front() && finding.where) {
    text += style.say(" at {}", *finding.where);
  }
  return text + style.word(": ") + reason_text(fix, style);
}

/// Unchanged except for the indentation, which patch(1) accepts.
std::string indented(std::string_view patch) {
  std::string out;
  while (!patch.empty()) {
    const std::size_t end = patch.find('\n');
    out += fmt::format("      {}\n", patch.substr(0, end));
    patch.remove_prefix(end == std::string_view::npos ? patch.size() : end + 1);
  }
  return out;
}

/// The change: knobs with their values, else words; and the command that tries it.
std::string changes(const Finding& finding, const Rule* rule, const Diagnosis& diagnosis, const Style& style) {
  std::string out;
  const auto command = detail::try_command(diagnosis, finding);
  for (const knobs::Change& fix : finding.fixes) {
    out += style.block(3, "=> ", fix_text(finding, fix, style)) + indented(fix.patch);
    if (fix.in_program) {
      const std::string& own = fix.in_program->command;
      out += lines_text(*fix.in_program, style) +
             (own.empty() || command ? "" : style.command(3, style.word("   run: "), own));
    }
  }
  if (finding.fixes.empty() && rule != nullptr) {
    out += style.block(
        3, "=> ", proposal(finding, style.language) + (finding.where ? style.say("; see {}", *finding.where) : ""));
  }
  for (const SourceLine& line : finding.lines) {
    out += fmt::format("      | {}\n", printable_line(line.text));
  }
  if (command) {
    out += style.command(3, style.word("   try: "), *command);
  }
  if (finding.cheaper) {
    const auto& [place, text, advice] = *finding.cheaper;
    out += style.block(3, "=> ", style.say("or make samples cheaper at {}: {}", place, style.word(advice)));
    out += text.empty() ? "" : fmt::format("      | {}\n", printable_line(text));
  }
  return out;
}

std::string finding_text(const Finding& finding, std::size_t number, const Diagnosis& diagnosis, const Style& style) {
  const Rule* rule = find_rule(finding.id);
  std::string head =
      rule == nullptr ? finding.id : fmt::format("{} [{}]", style.word(title_of(finding, *rule)), finding.id);
  head += style.word(": ") + style.word(to_string(finding.severity));
  if (finding.share) {
    head += style.say(", {} of the wall time", format_share(*finding.share));
  }
  if (finding.speedup_bound) {
    head += style.say(", at best {:.1f}x", *finding.speedup_bound);
  }
  const char* code = finding.severity == Severity::kCritical  ? "31;1"
                     : finding.severity == Severity::kWarning ? "33;1"
                                                              : "1";
  std::string out = style.paint(code, style.block(0, fmt::format("{}. ", number), head));
  for (const std::string& evidence : finding.evidence) {
    out += style.block(3, "- ", evidence);
  }
  return out + changes(finding, rule, diagnosis, style);
}

/// Shows zero as "0 s", not as "0.0 us".
std::string duration(double seconds) { return seconds < 5e-4 ? "0 s" : format_seconds(seconds); }

/// The busy share of NVML and events is an upper limit; hardware counters of the units are shown beside it.
std::string device_text(const Device& device, const Style& style) {
  const std::string busy = format_share(*device.busy);
  if (device.kind == "cpu") {
    return style.say("CPUs: {} busy while training (this command and its children).", busy);
  }
  std::string text = device.busy_is_limit ? style.say("Device: at most {} busy ({}).", busy, device.how)
                                          : style.say("Device: {} busy ({}).", busy, device.how);
  if (device.sm_activity) {
    text += style.say(" Its multiprocessors have work {} of the time", format_share(*device.sm_activity));
    text += device.tensor_activity ? style.say(", its matrix units {}.", format_share(*device.tensor_activity))
                                   : style.word(".");
  }
  return text;
}

std::string speed(const Diagnosis& diagnosis, const Style& style) {
  std::string out;
  if (diagnosis.samples_per_s) {
    const std::string rate = format_number(*diagnosis.samples_per_s);
    out += style.block(0, "",
                       diagnosis.others_cpus
                           ? style.say("Speed: {} samples/s, roughly: other processes used {} CPUs meanwhile.", rate,
                                       format_number(*diagnosis.others_cpus))
                           : style.say("Speed: {} samples/s.", rate));
  } else if (diagnosis.tokens_per_s) {
    const std::string rate = format_number(*diagnosis.tokens_per_s);
    out += style.block(0, "",
                       diagnosis.tokens_per_device ? style.say("Speed: {} tokens/s on each device.", rate)
                                                   : style.say("Speed: {} tokens/s.", rate));
  } else if (diagnosis.steps_per_s) {
    out += style.block(0, "", style.say("Speed: {} steps/s.", format_number(*diagnosis.steps_per_s)));
  }
  return out;
}

std::string arithmetic_text(const Arithmetic& arithmetic, const Style& style) {
  const std::string per_step = format_flops(arithmetic.flops_per_step);
  const std::string per_s = format_flops(arithmetic.flops_per_s) + "/s";
  return style.block(0, "",
                     arithmetic.utilisation ? style.say("Compute: {} per step, {}, {} of the data-sheet peak (MFU).",
                                                        per_step, per_s, format_share(*arithmetic.utilisation))
                                            : style.say("Compute: {} per step, {}.", per_step, per_s));
}

/// Nothing for short runs, unless a price was given.
std::string cost_text(const Cost& cost, const Style& style) {
  constexpr double kWorthALine = 0.1;  // GPU hours
  if (!cost.price && cost.gpu_hours < kWorthALine) {
    return "";
  }
  std::string text = style.say("Cost: {} GPU hours, {} of them idle.", format_number(cost.gpu_hours),
                               format_number(cost.idle_gpu_hours));
  if (cost.price) {
    text += style.say(" At {} an hour: {}, {} of it for idle time.", format_number(*cost.price),
                      format_number(cost.gpu_hours * *cost.price), format_number(cost.idle_gpu_hours * *cost.price));
  }
  return style.block(0, "", text);
}

std::string step_text(const StepShares& step, const std::optional<double>& exchange, const Style& style) {
  const std::string input = format_share(step.input);
  const std::string transfer = format_share(step.transfer);
  const std::string sync = format_share(step.sync);
  const std::string optimizer = format_share(step.optimizer);
  const std::string other = format_share(step.other);
  if (exchange) {
    return style.say(
        "Step: input {}, transfer {}, compute {}, waits for other ranks {}, host waits {}, optimizer {}, other {}.",
        input, transfer, format_share(step.compute - *exchange), format_share(*exchange), sync, optimizer, other);
  }
  return style.say("Step: input {}, transfer {}, compute {}, host waits {}, optimizer {}, other {}.", input, transfer,
                   format_share(step.compute), sync, optimizer, other);
}

/// Of the forward and backward pass, where they take most of a step.
std::string compute_text(const Diagnosis& diagnosis, const Style& style) {
  constexpr double kMost = 0.5;
  if (!diagnosis.step || diagnosis.step->compute < kMost || diagnosis.compute_in.empty()) {
    return "";
  }
  std::string places;
  for (const ComputePlace& place : diagnosis.compute_in) {
    const std::string share = format_share(place.is_backward ? place.of_line : place.share);
    places += places.empty() ? "" : style.word(", ");
    places += place.is_backward ? style.say("{} in the backward pass ({})", share, place.where)
                                : style.say("{} in {}", share, place.text);
  }
  return style.block(0, "", style.say("Compute, by stack samples: {}.", places));
}

std::string numbers(const Diagnosis& diagnosis, const Style& style) {
  const PhaseTimes& time = diagnosis.time;
  std::string out;
  if (diagnosis.outcome == Outcome::kStopped) {
    out += style.block(0, "", style.word("The run was stopped before its end."));
  }
  const double in_phases = time.startup + time.train + time.validate + time.checkpoint;
  if (in_phases > 0) {
    out += style.block(
        0, "",
        style.say("Time: start-up {}, training {}, validation {}, checkpoints {}, other {}.", duration(time.startup),
                  duration(time.train), duration(time.validate), duration(time.checkpoint), duration(time.other)));
  } else if (time.other > 0) {
    out += style.block(0, "", style.say("Time: {}, none of it seen in training.", duration(time.other)));
  }
  if (diagnosis.step && !diagnosis.input_stated.empty()) {
    out += style.block(0, "",
                       style.say("Step: input {} ({}).", format_share(diagnosis.step->input), diagnosis.input_stated));
  } else if (diagnosis.step) {
    out += style.block(0, "", step_text(*diagnosis.step, diagnosis.exchange, style));
  }
  out += compute_text(diagnosis, style);
  if (diagnosis.device.busy) {
    out += style.block(0, "", device_text(diagnosis.device, style));
  }
  out += speed(diagnosis, style);
  if (diagnosis.arithmetic) {
    out += arithmetic_text(*diagnosis.arithmetic, style);
  }
  if (diagnosis.cost) {
    out += cost_text(*diagnosis.cost, style);
  }
  if (diagnosis.rated_before_window) {
    out += style.block(0, "", style.word(kRatedBeforeWindow));
  }
  return out;
}

std::string node_text(const NodeView& node, const Diagnosis& diagnosis, const Style& style) {
  if (!node.problem.empty()) {
    return style.say("{}: its record cannot be read: {}", node.node, node.problem);
  }
  std::string text = fmt::format("{}: {}", node.node, style.word(to_string(node.verdict)));
  if (node.device.busy) {
    text += style.say(", device {} busy", format_share(*node.device.busy));
  }
  if (node.samples_per_s) {
    text += style.say(", {} samples/s", format_number(*node.samples_per_s));
  }
  return text + (node.node == diagnosis.node ? style.word(" (times and shares are of this one)") : "");
}

std::string nodes_text(const Diagnosis& diagnosis, const Style& style) {
  std::string out;
  for (const NodeView& node : diagnosis.nodes) {
    out += style.block(2, "- ", node_text(node, diagnosis, style));
  }
  return out.empty() ? "" : style.block(0, "", style.say("{} nodes:", diagnosis.nodes.size())) + out;
}

std::string rank_text(const account::RankTime& rank, const Style& style) {
  std::string text =
      rank.node.empty() ? style.say("rank {}: {} a step", rank.rank, format_seconds(rank.step_s))
                        : style.say("rank {} on node {}: {} a step", rank.rank, rank.node, format_seconds(rank.step_s));
  if (rank.parts) {
    text += style.say(", {} of it for input", duration((*rank.parts)[account::kInput]));
  }
  if (rank.wait_s) {
    text += style.say(", {} for gradients of others", duration(*rank.wait_s));
  }
  return text;
}

/// All ranks, or of many those that wait least and those that wait most: the former hold the latter up.
std::string ranks_text(const Diagnosis& diagnosis, const Style& style) {
  if (diagnosis.ranks.size() < 2) {
    return "";
  }
  std::vector<account::RankTime> ranks = diagnosis.ranks;
  const std::size_t left_out = style.verbose ? 0 : ranks.size() - std::min(ranks.size(), kMostRanks);
  if (left_out > 0) {
    std::ranges::stable_sort(ranks, {}, [](const account::RankTime& rank) { return rank.wait_s.value_or(0); });
    const auto middle = ranks.begin() + static_cast<std::ptrdiff_t>(kMostRanks / 2);
    ranks.erase(middle, middle + static_cast<std::ptrdiff_t>(left_out));
  }
  std::string out = style.block(0, "", style.say("{} ranks:", diagnosis.ranks.size()));
  for (const account::RankTime& rank : ranks) {
    out += style.block(2, "- ", rank_text(rank, style));
  }
  return out + (left_out > 0 ? style.block(2, "- ", style.say("{} more with unidle diagnose -v.", left_out)) : "");
}

}  // namespace

std::string to_text(const Diagnosis& diagnosis, int width, bool colour, Language language, bool verbose) {
  const Style style{width, colour, language, verbose};
  std::string out = style.paint("1", style.block(0, "", answer(diagnosis, language)));
  if (const std::string known = numbers(diagnosis, style); !known.empty()) {
    out += "\n" + known;
  }
  out += nodes_text(diagnosis, style) + ranks_text(diagnosis, style);
  const std::size_t shown = verbose ? diagnosis.findings.size() : std::min(kMostFindings, diagnosis.findings.size());
  for (std::size_t i = 0; i < shown; ++i) {
    out += "\n" + finding_text(diagnosis.findings[i], i + 1, diagnosis, style);
  }
  if (diagnosis.findings.size() > shown) {
    out += "\n" + style.block(0, "", style.say("{} more with unidle diagnose -v.", diagnosis.findings.size() - shown));
  }
  return out + detail::other_checks_text(diagnosis, style);
}

std::string proposal(const Finding& finding, Language language) {
  const Rule* rule = find_rule(finding.id);
  const std::string& words = finding.proposes.empty() && rule != nullptr ? rule->proposes : finding.proposes;
  return std::string(translate(language, words));
}

std::string title(const Finding& finding, Language language) {
  const Rule* rule = find_rule(finding.id);
  return rule == nullptr ? finding.id : std::string(translate(language, title_of(finding, *rule)));
}

}  // namespace unidle::diagnose
