#include "unidle/diagnose/detail/try_command.h"

#include <string_view>

#include "unidle/base/json.h"
#include "unidle/base/shell.h"
#include "unidle/knobs/knob.h"

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
  std::string changes;
  for (const knobs::Change& fix : finding.fixes) {
    if (!fix.to || fix.by_hand || fix.knob_class == knobs::KnobClass::kSemantic ||
        (!workload && !knobs::applies_at_run_time(fix.knob))) {
      continue;
    }
    changes += (workload ? " " : " --apply ") + shell_quoted(fmt::format("{}={}", fix.knob, *fix.to));
  }
  if (changes.empty()) {
    return std::nullopt;
  }
  return workload ? shell_joined(diagnosis.command) + changes
                  : "unidle run" + changes + " -- " + shell_joined(diagnosis.command);
}

}  // namespace unidle::diagnose::detail
