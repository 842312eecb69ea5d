#include "unidle/report/page/findings.h"

#include <fmt/format.h>

#include <string_view>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/try_command.h"
#include "unidle/diagnose/rule.h"
#include "unidle/report/page/code.h"

namespace unidle::report {

namespace {

using diagnose::Diagnosis;
using diagnose::Finding;
using diagnose::Rule;

/// The line of the configuration with the new value; nothing when it is written in other words.
std::optional<std::string> rewritten(const knobs::Change& fix) {
  if (fix.written.empty() || !fix.from || !fix.to) {
    return std::nullopt;
  }
  const std::string from = fix.from->to_text();
  return fix.written.ends_with(from)
             ? std::optional(fix.written.substr(0, fix.written.size() - from.size()) + fix.to->to_text())
             : std::nullopt;
}

/// The setting before and after, as lines of a diff.
Html setting_html(const knobs::Change& fix) {
  const auto line = rewritten(fix);
  const std::string before = line ? fix.written : fix.from ? fix.knob + ": " + fix.from->to_text() : "";
  const std::string after = line.value_or(fix.knob + ": " + fix.to->to_text());
  return lines_change_html(before.empty() ? std::vector<std::string>{} : std::vector{before}, {after});
}

Html in_program_html(const knobs::Change& fix, const Translator& translator) {
  const knobs::InProgram& change = *fix.in_program;
  const std::string words = diagnose::in_words(change, translator.language);
  const std::string mark = fmt::format("[{}, {}]", fix.knob, translator.word(to_string(fix.knob_class)));
  return element("div.fix", place_html(change.where),
                 change.after.empty() ? code_html(change.before) : lines_change_html(change.before, change.after),
                 element("p", element("code", words), " ", fix.reason, element("span.quiet", " " + mark)),
                 change.command.empty() ? Html() : command_to_copy(change.command));
}

/// One change: where, as code, and why.
Html fix_html(const Finding& finding, const knobs::Change& fix, const Translator& translator) {
  if (fix.in_program) {
    return in_program_html(fix, translator);
  }
  // A line of code makes no setting of unidle's.
  const bool in_program = finding.where.value_or("").find(".py:") != std::string::npos;
  const bool of_line = &fix == &finding.fixes.front() && (!in_program || fix.in_code || !fix.patch.empty() || !fix.to);
  const std::string place = !fix.written_at.empty() ? fix.written_at : of_line ? finding.where.value_or("") : "";
  const Html code = !fix.patch.empty() ? patch_html(fix.patch) : fix.to && !fix.in_code ? setting_html(fix) : Html();
  const std::string mark = fix.in_code || fix.knob.empty()
                               ? ""
                               : fmt::format("{} ({})", fix.knob, translator.word(to_string(fix.knob_class)));
  return element("div.fix", place_html(place), code,
                 element("p", fix.reason, mark.empty() ? Html() : element("span.quiet", " " + mark)));
}

Html changes_html(const Diagnosis& diagnosis, const Finding& finding, const Translator& translator) {
  Html out;
  for (const knobs::Change& fix : finding.fixes) {
    out += fix_html(finding, fix, translator);
  }
  if (finding.fixes.empty()) {
    out += place_html(finding.where.value_or("")) + element("p", diagnose::proposal(finding, translator.language));
  }
  for (const diagnose::SourceLine& line : finding.lines) {
    out += code_html({line.text});
  }
  if (finding.cheaper) {
    const auto& [place, code, advice] = *finding.cheaper;
    const std::string words = translator.say("Or make samples cheaper: {}", translator.word(advice));
    out += element("div.fix", place_html(place), code.empty() ? Html() : code_html({code}), element("p", words));
  }
  if (const auto command = diagnose::detail::try_command(diagnosis, finding)) {
    out += element("p.quiet", translator.say("To try it without editing anything:")) + command_to_copy(*command);
  }
  return out;
}

/// How much time a finding takes, and what mending it may gain; "" where neither is known.
std::string weight_of(const Finding& finding, const Translator& translator) {
  const std::string share = finding.share ? format_share(*finding.share) : "";
  if (finding.share && finding.speedup_bound) {
    return translator.say("{} of wall time, at best {:.2f}x from this alone", share, *finding.speedup_bound);
  }
  if (finding.speedup_bound) {
    return translator.say("at best {:.2f}x from this alone", *finding.speedup_bound);
  }
  return finding.share ? translator.say("{} of wall time", share) : "";
}

Html finding_html(const Diagnosis& diagnosis, const Finding& finding, bool shown, const Translator& translator) {
  const std::string severity = to_string(finding.severity);
  const std::string title = diagnose::title(finding, translator.language);
  const std::string weight = weight_of(finding, translator);
  std::vector<Html> evidence;
  for (const std::string& fact : finding.evidence) {
    evidence.push_back(prose(fact));
  }
  const Html change = shown ? element("p.quiet", translator.say("The change is at the top of this page."))
                            : changes_html(diagnosis, finding, translator);
  return element(fmt::format("article.card.{}", severity), element("h3", title, " ", element("span.rule", finding.id)),
                 element("p.weight", element("span.tag", translator.word(severity)), " ", weight),
                 finding.share ? element("span.track", element("i.share", width_of(*finding.share))) : Html(),
                 list("ul", evidence),
                 change.empty() ? change : element("h4", translator.say("What to change")) + change) +
         Html{"\n"};
}

}  // namespace

Html leading_change(const Diagnosis& diagnosis, const Translator& translator) {
  if (diagnosis.findings.empty() || diagnosis.findings.front().severity == diagnose::Severity::kInfo) {
    return {};
  }
  const Finding& leading = diagnosis.findings.front();
  return changes_html(diagnosis, leading, translator);
}

Html findings_html(const Diagnosis& diagnosis, bool leading_shown, const Translator& translator) {
  Html out;
  for (const Finding& finding : diagnosis.findings) {
    out += finding_html(diagnosis, finding, leading_shown && out.empty(), translator);
  }
  return out.empty() ? element("p", translator.say("No rule found anything to say.")) : element("div.cards", out);
}

}  // namespace unidle::report
