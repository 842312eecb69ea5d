#include "unidle/diagnose/detail/try_command.h"

#include <string_view>

#include "unidle/base/json.h"
#include "unidle/base/shell.h"
#include "unidle/knobs/knob.h"
#include "unidle/knobs/reach.h"

namespace unidle::diagnose::detail {

namespace {

/// True for `unidle train X.yaml` and for a workload's program, which take KEY=VALUE.
bool is_workload(const std::vector<std::string>& command) {
  const std::string_view program = std::string_view(command[0]).substr(command[0].rfind('/') + 1);
  return program == "unidle-train" || (program == "unidle" && command.size() > 1 && command[1] == "train");
}

}  // namespace

std::optional<std::string> try_command(const Diagnosis& diagnosis, const Finding& finding) {
  if (diagnosis.command.empty()) {
    return std::nullopt;
  }
  const bool workload = is_workload(diagnosis.command);
  knobs::ProgramCommand program{diagnosis.command, {}, diagnosis.omitted, diagnosis.run_options};
  knobs::Settings changes;
  for (const knobs::Change& fix : finding.fixes) {
    const knobs::Knob* knob = knobs::find_knob(fix.knob);
    if (knob == nullptr || !fix.to || fix.by_hand || fix.knob_class == knobs::KnobClass::kSemantic ||
        (!workload && !knobs::applies_at_run_time(fix.knob))) {
      continue;
    }
    changes.set(fix.knob, *fix.to);
    if (fix.from && knobs::takes(*knob, *fix.from)) {  // programs report what they like
      program.in_effect.set(fix.knob, *fix.from);
    }
  }
  if (changes.empty()) {
    return std::nullopt;
  }
  if (!workload) {
    return knobs::run_command(program, changes);
  }
  std::string command = shell_joined(diagnosis.command);
  for (const auto& [knob, value] : changes) {
    command += " " + shell_quoted(knobs::pair_key(knob, value));
  }
  return command;
}

}  // namespace unidle::diagnose::detail
