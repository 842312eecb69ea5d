#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unidle/diagnose/detail/text_style.h"
#include "unidle/diagnose/detail/timeline_findings.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::detail {

namespace {

using BySignal = std::map<std::string, std::set<std::string>>;

std::string_view blind_in_words(std::string_view why) {
  constexpr std::pair<std::string_view, std::string_view> kSentences[] = {
      {"isolated",
       "The training process was started with python -I or -E, which leaves out what unidle adds: without that option "
       "its training loop is seen."},
      {"no-site",
       "The training process was started with python -S, which leaves out what unidle adds: without that option its "
       "training loop is seen."},
      {"environment",
       "The training process was started without the variables that unidle set (by env -i, sudo or a container, say): "
       "hand PYTHONPATH and UNIDLE_PROBE_DIR on to it, and its training loop is seen."},
      {"path",
       "The command sets PYTHONPATH and drops unidle's folder from it: set it before (PYTHONPATH=FOLDER unidle run -- "
       "...), or keep its value in a script (PYTHONPATH=FOLDER:$PYTHONPATH), and the training loop is seen."},
      {"no-python",
       "The training process is no Python program; other programs report their steps through libunidle_probe "
       "(docs/probe-format.md)."},
      {"other",
       "The training process did not load what unidle adds to a Python of 3.9 or newer; something changed how that "
       "Python starts."},
      {"off",
       "The shim, which observes the program from within, switched itself off; the record's shim notes say why."},
      {"no-training", "The program was followed and called nothing of PyTorch's training."},
      {"no-update",
       "Steps end with the step of an optimiser, and none was made: call unidle.step() at the end of each step, and "
       "the training loop is seen."},
  };
  for (const auto& [code, sentence] : kSentences) {
    if (code == why) {
      return sentence;
    }
  }
  return "To see inside the training loop, record it with unidle run and a Python that has torch.";
}

/// How to measure what a rule lacked; nothing when this machine has no way.
std::vector<std::string> ways_to_see(const Diagnosis& diagnosis, const BySignal& by_signal, const Style& style) {
  if (!diagnosis.abstained.empty() && (!diagnosis.step || !diagnosis.input_stated.empty())) {
    return {style.word(blind_in_words(diagnosis.blind))};
  }
  std::vector<std::string> ways;
  const bool on_cpu = diagnosis.device.kind == "cpu";
  if (!on_cpu && !diagnosis.device.busy) {
    ways.push_back(
        style.word("To see how busy the device is, NVML has to be found: install the driver's libnvidia-ml.so.1 or set "
                   "UNIDLE_NVML_LIBRARY."));
  }
  if (!on_cpu && (by_signal.contains(kTimelineMissing) || by_signal.contains(style.word(kTimelineMissing)))) {
    ways.push_back(
        style.word("To see what device and host do kernel by kernel, record some steps with unidle run --trace 10."));
  }
  return ways;
}

/// The signals that most rules lack, with those rules.
std::string unseen_signals(const BySignal& by_signal, const Style& style) {
  std::vector<BySignal::const_pointer> order;
  for (const auto& entry : by_signal) {
    order.push_back(&entry);
  }
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->second.size() > b->second.size(); });
  std::string out;
  for (const auto* entry : order) {
    out += style.block(2, "- ", fmt::format("{} [{}]", entry->first, fmt::join(entry->second, ", ")));
  }
  return out;
}

/// The topics of the rules that found no cause.
std::vector<std::string> fine_topics(const Diagnosis& diagnosis, const Style& style) {
  std::set<std::string> named(diagnosis.folded.begin(), diagnosis.folded.end());
  for (const Finding& finding : diagnosis.findings) {
    named.insert(finding.id);
  }
  for (const Abstention& abstention : diagnosis.abstained) {
    named.insert(abstention.id);
  }
  std::vector<std::string> topics;
  for (const Rule* rule : all_rules()) {
    if (!named.contains(rule->id)) {
      topics.push_back(style.word(rule->topic));
    }
  }
  return topics;
}

/// The rules that could not be checked, grouped by what they lack.
struct Unseen {
  BySignal by_signal;
  std::size_t rules = 0;
  std::size_t about_gpus = 0;  // of a run that trains on its CPU; not in the others
};

Unseen unseen_of(const Diagnosis& diagnosis, const Style& style) {
  Unseen unseen;
  for (const Abstention& abstention : diagnosis.abstained) {
    if (abstention.missing.find("the device is a CPU") != std::string::npos ||
        abstention.missing.find(style.word("the device is a CPU")) != std::string::npos) {
      ++unseen.about_gpus;
    } else {
      unseen.by_signal[abstention.missing].insert(abstention.id);
      ++unseen.rules;
    }
  }
  return unseen;
}

std::string listed(const std::vector<std::string>& topics, const Unseen& unseen, const Style& style) {
  std::string out;
  if (!topics.empty()) {
    out += "\n" + style.block(0, "", style.say("Fine: {}.", fmt::to_string(fmt::join(topics, style.word(", ")))));
  }
  if (unseen.rules + unseen.about_gpus == 0) {
    return out;
  }
  out += "\n" + style.block(0, "", style.word("Not seen:")) + unseen_signals(unseen.by_signal, style);
  if (unseen.about_gpus > 0) {
    out +=
        style.block(2, "- ", style.say("{} rules are about GPUs, and this run trains on the CPU", unseen.about_gpus));
  }
  return out + (unseen.rules > 0
                    ? style.block(0, "", style.word("unidle diagnose --explain ID says what each rule needs."))
                    : "");
}

std::string counted(std::size_t fine, std::size_t unseen, const Style& style) {
  if (fine + unseen == 0) {
    return "";
  }
  return "\n" +
         style.block(0, "",
                     unseen == 0 ? style.say("{} other checks found nothing (unidle diagnose -v lists them).", fine)
                     : fine == 0 ? style.say("{} checks lack a measurement (unidle diagnose -v lists them).", unseen)
                                 : style.say("{} other checks found nothing, {} lack a measurement (unidle "
                                             "diagnose -v lists them).",
                                             fine, unseen));
}

}  // namespace

std::string other_checks_text(const Diagnosis& diagnosis, const Style& style) {
  const std::vector<std::string> topics = fine_topics(diagnosis, style);
  const Unseen unseen = unseen_of(diagnosis, style);
  std::string out = style.verbose ? listed(topics, unseen, style) : counted(topics.size(), unseen.rules, style);
  for (const std::string& way : ways_to_see(diagnosis, unseen.by_signal, style)) {
    out += style.block(0, "", way);
  }
  return out;
}

}  // namespace unidle::diagnose::detail
