#include "unidle/diagnose/in_program/in_program.h"

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>
#include <utility>

#include "unidle/base/log.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/line_advice.h"
#include "unidle/diagnose/in_program/padding_line.h"
#include "unidle/diagnose/in_program/program_words.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose {

namespace {

using knobs::Change;

constexpr std::string_view kTrimPadding = "batch.trim_padding";

/// Whether the line hands the whole training to a library, as `trainer.train()` does. As the place of a computation it
/// says nothing.
bool hands_over(const std::vector<SourceLine>& lines) {
  constexpr std::array<std::string_view, 3> kTrains = {".fit(", ".train(", ".learn("};
  return !lines.empty() && std::ranges::any_of(kTrains, [&](std::string_view call) {
    return lines.front().text.find(call) != std::string::npos;
  });
}

void name_compute_places(ProgramWords& program, std::vector<ComputePlace>& places) {
  std::erase_if(places, [&](ComputePlace& place) {
    const std::vector<SourceLine> lines = program.line_at(place.where);
    place.is_backward = !lines.empty() && lines.front().text.find("backward(") != std::string::npos &&
                        lines.front().text.find(';') == std::string::npos;  // several statements
    return hands_over(lines);
  });
}

/// A batch size that changes without the number of batches per step, or the other way round, changes what is trained:
/// both have words or neither, and one command makes both changes.
void keep_batch_whole(const ProgramWords& program, Finding& finding) {
  std::vector<Change*> of_batch;
  for (Change& fix : finding.fixes) {
    if (fix.knob.starts_with("batch.")) {
      of_batch.push_back(&fix);
    }
  }
  if (!std::ranges::all_of(of_batch, [](const Change* fix) { return fix->in_program.has_value(); })) {
    std::ranges::for_each(of_batch, [](Change* fix) { fix->in_program.reset(); });
  }
  const auto by_command = [](const Change* fix) { return fix->in_program && !fix->in_program->command.empty(); };
  if (std::ranges::count_if(of_batch, by_command) > 1) {
    std::vector<Change> together;
    std::ranges::transform(of_batch, std::back_inserter(together), [](const Change* fix) { return *fix; });
    std::ranges::for_each(of_batch, [](Change* fix) { fix->in_program->command.clear(); });
    of_batch.back()->in_program->command = program.command_with(together);
  }
}

/// True when the finding's first fix keeps samples, and the run makes so few passes that most of them have to be made
/// all the same.
bool keeps_little(const Signals& signals, const Policy& policy, const Finding& finding) {
  return !finding.fixes.empty() && finding.fixes.front().knob == "cache.features" && finding.share && signals.epochs &&
         *signals.epochs > 0 && 1 - 1 / *signals.epochs <= policy.mostly;
}

/// Puts that line's advice first, with the bound of samples that cost nothing.
void lead_with_cheaper_samples(Finding& finding, const std::string& where, std::string_view advice) {
  Change change = finding.fixes.front();
  change.to.reset();
  change.reason = advice;
  change.in_code = change.by_hand = true;
  finding.fixes.insert(finding.fixes.begin(), std::move(change));
  finding.where = where;
  finding.speedup_bound = amdahl(std::min(1.0, *finding.share + finding.won_in_validation));
  finding.later_bound.reset();
}

/// How the line that the finding names can cost less, as that of a collate function, where nothing else is proposed.
void put_advice_for_named_line(Language language, Finding& finding) {
  const std::string advice = finding.lines.empty() ? "" : detail::advice_for_sample("", finding.lines.front().text);
  if (advice.empty()) {
    return;
  }
  if (finding.fixes.empty()) {
    finding.proposes = advice;
  } else if (!finding.fixes.front().to) {
    finding.fixes.front().reason = translate(language, advice);
  }
}

/// How samples can cost less, where they cost most: as the advice of a finding without a fix, before a fix that gains
/// little, else besides its fixes. Only for the first finding that cheaper samples would cure.
void put_cheaper_samples(const Signals& signals, const Policy& policy, Language language, ProgramWords& program,
                         std::vector<Finding>& findings) {
  const auto hot = detail::hot_sample_function(signals);
  const auto cured = std::ranges::find_if(findings, [](const Finding& finding) {
    const Rule* rule = find_rule(finding.id);
    return rule != nullptr && rule->costly_samples;
  });
  if (!hot || cured == findings.end() || hot->looks < detail::kEnoughStackSamples) {
    return;
  }
  put_advice_for_named_line(language, *cured);
  if (hot->of_line < detail::kLeastShareOfStackSamples) {
    return;
  }
  const bool in_package = hot->where.empty();
  const auto called = signals.called.find(hot->where);
  const std::string function = in_package ? hot->function : called != signals.called.end() ? called->second : "";
  const std::vector<SourceLine> lines = program.line_at(hot->where);
  const std::string text = lines.empty() ? "" : lines.front().text;
  const std::string advice = detail::advice_for_sample(function, text);
  if (advice.empty()) {
    return;
  }
  if (cured->fixes.empty()) {
    cured->proposes = advice;
  } else if (!in_package && keeps_little(signals, policy, *cured)) {
    lead_with_cheaper_samples(*cured, hot->where, translate(language, advice));
    cured->lines = lines;
  } else {
    cured->cheaper = CheaperSamples{in_package ? hot->function : hot->where, text, advice};
  }
}

}  // namespace

void put_in_program(const Signals& signals, const Policy& policy, Diagnosis& diagnosis, Language language) {
  try {
    ProgramWords program(signals);
    for (Finding& finding : diagnosis.findings) {
      for (Change& fix : finding.fixes) {
        fix.in_program.reset();
        const double rarer_by =
            fix.knob.starts_with("validation.") ? detail::rarer_validation_by(signals, policy.validation_target) : 1;
        if (rarer_by > 1) {
          program.put_rarer_validation(rarer_by, fix);
        }
        if (fix.to && !fix.in_code && fix.patch.empty() && !fix.in_program) {
          fix.in_program = program.words_for(fix);
        }
      }
      keep_batch_whole(program, finding);
      const bool trims = std::ranges::any_of(finding.fixes, [](const Change& fix) { return fix.knob == kTrimPadding; });
      if (const auto place = trims ? line_that_pads(signals, program.sources()) : std::nullopt) {
        finding.where = *place;
      }
      const Rule* rule = find_rule(finding.id);
      if (rule != nullptr && rule->counts == Counts::kDeviceTime && hands_over(program.line_at(finding.where))) {
        finding.where.reset();
      }
      const bool shown = std::any_of(finding.fixes.begin(), finding.fixes.end(),
                                     [](const Change& fix) { return !fix.patch.empty() || fix.in_program; });
      finding.lines = shown ? std::vector<SourceLine>{} : program.line_at(finding.where);
      if (rule != nullptr && rule->about_line && !finding.lines.empty()) {
        finding.proposes = detail::advice_for_line(signals, policy, *finding.where, finding.lines.front().text);
      }
    }
    put_cheaper_samples(signals, policy, language, program, diagnosis.findings);
    name_compute_places(program, diagnosis.compute_in);
  } catch (const std::exception& failure) {
    spdlog::debug("the lines to change are not shown: {}", failure.what());
  }
}

}  // namespace unidle::diagnose
