#include "unidle/tune/advice/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "unidle/base/units.h"
#include "unidle/language/sentence.h"
#include "unidle/tune/advice/proposals.h"

namespace unidle::tune {

std::vector<knobs::Change> advise(const knobs::ConfigFile& config, const traits::Workload* workload,
                                  const Hardware& hardware, bool only_present, Profile profile) {
  const knobs::Settings settings = knobs::read_settings(config);
  ProposalOptions options;
  options.only_present = only_present;
  std::vector<knobs::Change> changes;
  std::set<std::string> seen;
  for (const Proposal& proposal : propose(settings, workload, hardware, options)) {
    const bool again = std::any_of(proposal.changes.begin(), proposal.changes.end(),
                                   [&](const auto& change) { return seen.contains(change.first); });
    const bool bold = profile == Profile::kFast && proposal.changes.contains("compile.mode");
    const bool too_far = profile == Profile::kLight && !knobs::is_exact(proposal.changes);
    if ((!proposal.safe && !bold) || again || too_far) {
      continue;
    }
    for (const auto& [knob, value] : proposal.changes) {
      seen.insert(knob);
      changes.push_back(knobs::change_of(knob, settings.in_force(knob), value, proposal.reason));
    }
  }
  return changes;
}

void apply_changes(std::vector<knobs::Change>& changes, knobs::ConfigFile& config) {
  for (knobs::Change& change : changes) {
    change.paths = knobs::write_setting(config, change.knob, *change.to);
  }
}

namespace {

int line_of(const std::string& text, std::size_t at) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

std::string reason_of(const knobs::Change& change, Language language) {
  std::string text = fmt::format("{}: {}", change.knob, translate_sentence(language, change.reason));
  if (!change.depends.empty()) {
    text += translate(language, "; depends on {}", translate_sentence(language, change.depends));
  }
  if (change.gain) {
    text += fmt::format(" ({}x)", format_number(*change.gain));
  }
  return text;
}

/// "@@ -1,4 +7,5 @@" -> 7
int first_new_line(const std::string& header) {
  const std::size_t plus = header.find('+');
  return plus == std::string::npos ? 0 : std::atoi(header.c_str() + plus + 1);
}

}  // namespace

std::string explained_diff(const std::string& before, const knobs::ConfigFile& after,
                           const std::vector<knobs::Change>& changes, const std::string& name, Language language) {
  std::map<int, std::vector<std::string>> reasons;
  for (const knobs::Change& change : changes) {
    for (const std::string& path : change.paths.empty() ? std::vector{change.knob} : change.paths) {
      if (const knobs::Scalar* scalar = after.find(path)) {
        reasons[line_of(after.text(), scalar->begin)].push_back(reason_of(change, language));
      }
    }
  }
  const std::string diff = knobs::unified_diff(before, after.text(), name);
  std::string result;
  int line = 0;
  for (std::size_t at = 0; at < diff.size();) {
    const std::size_t end = std::min(diff.find('\n', at), diff.size() - 1);
    const std::string text = diff.substr(at, end - at);
    at = end + 1;
    result += text + "\n";
    if (text.starts_with("@@")) {
      line = first_new_line(text);
    } else if (text.starts_with("+") && !text.starts_with("+++ ")) {
      for (const std::string& reason : reasons[line]) {
        result += "    # " + reason + "\n";
      }
      ++line;
    } else if (text.starts_with(" ")) {
      ++line;
    }
  }
  return result;
}

}  // namespace unidle::tune
