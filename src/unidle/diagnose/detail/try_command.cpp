#include "unidle/diagnose/detail/try_command.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace unidle::diagnose::detail {

namespace {

/// What can be changed in a running Python program; the rest is in its own hands.
bool applies_at_run_time(std::string_view knob) {
  static constexpr std::array<std::string_view, 13> kKnobs = {"loader.workers",
                                                              "loader.pin_memory",
                                                              "loader.prefetch_factor",
                                                              "loader.persistent_workers",
                                                              "transfer.non_blocking",
                                                              "precision.amp",
                                                              "precision.tf32",
                                                              "compile.mode",
                                                              "layout.channels_last",
                                                              "cudnn.benchmark",
                                                              "optimizer.fused",
                                                              "optimizer.zero_to_none",
                                                              "cpu.threads"};
  return std::find(kKnobs.begin(), kKnobs.end(), knob) != kKnobs.end();
}

/// As a shell reads it back.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_-./=:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) {
    return word;
  }
  std::string out = "'";
  for (const char c : word) {
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out + "'";
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    out += (out.empty() ? "" : " ") + quoted(word);
  }
  return out;
}

/// True for `unidle train X.yaml` and the program behind it, which take KEY=VALUE.
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
  for (const Fix& fix : finding.fixes) {
    if (fix.to.is_null() || fix.fix_class == FixClass::kSemantic || (!workload && !applies_at_run_time(fix.knob))) {
      continue;
    }
    const std::string value = fix.to.is_string() ? fix.to.get<std::string>() : fix.to.dump();
    changes += (workload ? " " : " --apply ") + quoted(fix.knob + "=" + value);
  }
  if (changes.empty()) {
    return std::nullopt;
  }
  return workload ? joined(diagnosis.command) + changes : "unidle run" + changes + " -- " + joined(diagnosis.command);
}

}  // namespace unidle::diagnose::detail
