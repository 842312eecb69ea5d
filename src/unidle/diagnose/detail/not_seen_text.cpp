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
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::detail {

namespace {

constexpr std::size_t kMostUnseen = 6;

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
      {"no-python",
       "The training process is no Python program; other programs report their steps through libunidle_probe "
       "(docs/probe-format.md)."},
      {"other",
       "The training process did not load what unidle adds to a Python of 3.9 or newer; something changed how that "
       "Python starts."},
      {"off",
       "The shim, which observes the program from within, switched itself off; the record's shim notes say why."},
      {"no-training", "The program was followed and called nothing of PyTorch's training."},
  };
  for (const auto& [code, sentence] : kSentences) {
    if (code == why) {
      return sentence;
    }
  }
  return "To see inside the training loop, record it with unidle run and a Python that has torch; unidle diagnose "
         "--explain ID says what each rule needs.";
}

/// How to measure the missing signals; nothing when this machine has no way.
std::string_view way_to_see(const Diagnosis& diagnosis, const std::set<std::string>& ids) {
  if (!diagnosis.step || !diagnosis.input_stated.empty()) {
    return blind_in_words(diagnosis.blind);
  }
  const bool busy = diagnosis.device.kind != "cpu" && !diagnosis.device.busy;
  if (busy) {
    return "To see how busy the device is, NVML has to be found: install the driver's libnvidia-ml.so.1 or set "
           "UNIDLE_NVML_LIBRARY.";
  }
  return ids.empty() ? "" : "unidle diagnose --explain ID says what each rule needs.";
}

using BySignal = std::map<std::string, std::set<std::string>>;

/// The signals that most rules lack, with those rules; the others are only counted.
std::string unseen_signals(const BySignal& by_signal, const Style& style) {
  std::vector<BySignal::const_pointer> order;
  for (const auto& entry : by_signal) {
    order.push_back(&entry);
  }
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->second.size() > b->second.size(); });
  std::string out;
  const std::size_t shown = order.size() <= kMostUnseen + 1 ? order.size() : kMostUnseen;
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [signal, rules] = *order[i];
    out += style.block(2, "- ", fmt::format("{} [{}]", signal, fmt::join(rules, ", ")));
  }
  if (shown < order.size()) {
    out += style.block(2, "- ", style.say("{} more with --format json.", order.size() - shown));
  }
  return out;
}

}  // namespace

std::string fine_text(const Diagnosis& diagnosis, const Style& style) {
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
      topics += (topics.empty() ? "" : style.word(", ")) + style.word(rule->topic);
    }
  }
  return topics.empty() ? "" : "\n" + style.block(0, "", style.say("Fine: {}.", topics));
}

/// Grouped by missing signal; rules about GPUs are only counted when the machine trains on its CPU.
std::string not_seen_text(const Diagnosis& diagnosis, const Style& style) {
  BySignal by_signal;
  std::set<std::string> ids;
  std::size_t gpu_only = 0;
  for (const Abstention& abstention : diagnosis.abstained) {
    const bool about_gpu = abstention.missing.find("the device is a CPU") != std::string::npos ||
                           abstention.missing.find(style.word("the device is a CPU")) != std::string::npos;
    if (about_gpu) {
      ++gpu_only;
    } else {
      by_signal[abstention.missing].insert(abstention.id);
      ids.insert(abstention.id);
    }
  }
  if (diagnosis.abstained.empty()) {
    return "";
  }
  std::string out = "\n" + style.block(0, "", style.word("Not seen:"));
  out += unseen_signals(by_signal, style);
  if (gpu_only > 0) {
    out += style.block(2, "- ", style.say("{} rules are about GPUs, and this run trains on the CPU", gpu_only));
  }
  if (const std::string_view way = way_to_see(diagnosis, ids); !way.empty()) {
    out += style.block(0, "", style.word(way));
  }
  return out;
}

}  // namespace unidle::diagnose::detail
