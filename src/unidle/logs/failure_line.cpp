#include "unidle/logs/failure_line.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <string>

#include "unidle/base/characters.h"
#include "unidle/base/substrings.h"
#include "unidle/logs/detail/failure_forms.h"
#include "unidle/logs/detail/line_front.h"
#include "unidle/logs/detail/numbers.h"

namespace unidle::logs {

namespace {

using detail::Level;
using detail::LogMessage;

constexpr auto kNotFound = std::string_view::npos;

/// Words of advice and plans: what follows them has not happened.
bool is_advice(std::string_view before) {
  static constexpr std::array<std::string_view, 14> kWords = {"avoid",   "prevent", "If ",      "if ",     "in case",
                                                              "In case", " may ",   " might ",  " could ", " can ",
                                                              "reduce",  "protect", "without ", " no "};
  return contains_any(before, kWords);
}

/// Words that mean a lack of memory anywhere in the message of a failure.
struct LackWords {
  std::string_view words;
  Lack lack;
};
constexpr std::array kLackWords = {
    LackWords{"insufficient shared memory", Lack::kSharedMemory},
    LackWords{"out of shared memory", Lack::kSharedMemory},
    LackWords{"unable to write to file </torch_", Lack::kSharedMemory},
    LackWords{"CUDNN_STATUS_ALLOC_FAILED", Lack::kDeviceMemory},
    LackWords{"CUBLAS_STATUS_ALLOC_FAILED", Lack::kDeviceMemory},
    LackWords{"CUSOLVER_STATUS_ALLOC_FAILED", Lack::kDeviceMemory},
    LackWords{"CUSPARSE_STATUS_ALLOC_FAILED", Lack::kDeviceMemory},
    LackWords{"CUFFT_ALLOC_FAILED", Lack::kDeviceMemory},
    LackWords{"BLAS_STATUS_ALLOC_FAILED", Lack::kDeviceMemory},
    LackWords{"CUDA_ERROR_OUT_OF_MEMORY", Lack::kDeviceMemory},
    LackWords{"cudaErrorMemoryAllocation", Lack::kDeviceMemory},
    LackWords{"hipErrorOutOfMemory", Lack::kDeviceMemory},
    LackWords{"OOM when allocating tensor", Lack::kDeviceMemory},
    LackWords{"annot allocate memory", Lack::kHostMemory},
    LackWords{"can't allocate memory", Lack::kHostMemory},
    LackWords{"not enough memory: you tried to allocate", Lack::kHostMemory},
    LackWords{"std::bad_alloc", Lack::kHostMemory},
    LackWords{"bad allocation", Lack::kHostMemory},
    LackWords{"ENOMEM", Lack::kHostMemory},
    LackWords{"Java heap space", Lack::kHostMemory},
};

Lack lack_of_class(std::string_view name) {
  const bool on_host = name.starts_with("ray.") || name.starts_with("java.");
  if (name.ends_with("OutOfMemoryError")) {
    return on_host ? Lack::kHostMemory : Lack::kDeviceMemory;
  }
  return name.ends_with("MemoryError") ? Lack::kHostMemory : Lack::kNone;
}

/// Which memory a message that says "out of memory" means.
Lack device_or_host(std::string_view message) {
  static constexpr std::array<std::string_view, 13> kDevices = {"CUDA",
                                                                "cuda",
                                                                "Cuda",
                                                                "HIP",
                                                                "GPU",
                                                                "XPU",
                                                                "MPS",
                                                                "NPU",
                                                                "TPU",
                                                                "NCCL",
                                                                "cuBLAS",
                                                                "cuDNN",
                                                                "RESOURCE_EXHAUSTED"};
  return contains_any(message, kDevices) ? Lack::kDeviceMemory : Lack::kHostMemory;
}

Lack lack_in(std::string_view message) {
  if (const Lack lack = lack_of_class(detail::exception_name(message)); lack != Lack::kNone) {
    return lack;
  }
  for (const LackWords& one : kLackWords) {
    const std::size_t at = message.find(one.words);
    if (at != kNotFound && !is_advice(message.substr(0, at))) {
      return one.lack;
    }
  }
  for (const std::string_view words : {"ut of memory", "ut Of Memory"}) {
    const std::size_t at = message.find(words);
    if (at != kNotFound && !is_advice(message.substr(0, at))) {
      return device_or_host(message);
    }
  }
  return Lack::kNone;
}

Blame blame_in(std::string_view message) {
  static constexpr std::array<std::string_view, 6> kOfLaunchers = {"ChildFailedError",       "CalledProcessError",
                                                                   "ProcessRaisedException", "SignalException",
                                                                   "KeyboardInterrupt",      "SystemExit"};
  constexpr std::string_view kHorovod = "Horovod detected that one or more processes";
  static constexpr std::array<std::string_view, 13> kOfPeers = {"Connection closed by peer",
                                                                "Connection reset by peer",
                                                                "onnection refused",
                                                                "ncclRemoteError",
                                                                "NCCL communicator was aborted",
                                                                "remote process exited",
                                                                "Broken pipe",
                                                                "collective operation timeout",
                                                                "Horovod has been shut down",
                                                                "failed to recv, got 0 bytes",
                                                                "Timed out waiting",
                                                                "Socket Timeout",
                                                                "wait timeout after"};
  if (contains_any(message.substr(0, message.find(' ')), kOfLaunchers) || message.find(kHorovod) != kNotFound) {
    return Blame::kLauncher;
  }
  return contains_any(message, kOfPeers) ? Blame::kPeer : Blame::kOwn;
}

/// Sets exit code and signal, which Python and shells encode in the exit code.
void take_exit(int code, FailureFacts& facts) {
  constexpr int kOfSignals = 128;
  facts.signal = code < 0 ? -code : code > kOfSignals && code < kOfSignals + 64 ? code - kOfSignals : 0;
  facts.exit_code = facts.signal == 0 || code > 0 ? code : kOfSignals + facts.signal;
  const bool commits_periodically = facts.signal != 0 && facts.signal != SIGABRT;
  facts.blame = commits_periodically ? Blame::kOwn : facts.blame;
  if (facts.signal == SIGBUS) {
    facts.lack = Lack::kSharedMemory;
  }
}

std::optional<FailureFacts> by_form(std::string_view text) {
  detail::FormNumbers numbers;
  const detail::Form* form = detail::form_of(text, numbers);
  if (form == nullptr || numbers.exit == 0 || numbers.count == 0) {
    return std::nullopt;
  }
  FailureFacts facts{form->speaker, form->lack, form->blame, form->signal, 0, numbers.rank, std::nullopt, form->hint};
  facts.signal = numbers.signal.value_or(facts.signal);
  if (numbers.exit) {
    take_exit(*numbers.exit, facts);
  }
  if (numbers.time_ms) {
    facts.timeout_s = *numbers.time_ms / 1000;
  }
  const bool asked = facts.signal == SIGTERM || facts.signal == SIGINT;  // launchers end processes with these
  return asked ? std::nullopt : std::optional(facts);
}

/// "ValError: 0.31" is a metric. So is any name followed only by a number, except a missing key.
bool is_figure(std::string_view name, std::string_view behind) {
  const bool key = name.ends_with("KeyError") || name.ends_with("IndexError") || name.ends_with("SystemExit");
  return !key && detail::whole_number(trimmed(behind)).has_value();
}

std::optional<FailureFacts> by_exception(const LogMessage& said) {
  const std::string_view name = detail::exception_name(said.text);
  if (name.empty()) {
    return std::nullopt;
  }
  const std::string_view behind = said.text.substr(std::min(name.size() + 1, said.text.size()));
  if (is_figure(name, behind)) {
    return std::nullopt;
  }
  FailureFacts facts = facts_of_message(said.text);
  facts.hint = said.level == Level::kBelowError;
  return facts.hint && facts.lack == Lack::kNone ? std::nullopt : std::optional(facts);
}

/// False if "out of memory" is part of a name: "out of memory retries: 0", "out of memory handler".
bool ends_there(std::string_view behind) {
  static constexpr std::array<std::string_view, 14> kCircumstances = {
      " on ",    " in ",   " at ", " while ",   " when ",    " during ", " for ",
      " after ", " with ", " - ",  " detected", " occurred", " (GPU",    " (tried"};
  for (const std::string_view word : {" error", " exception", " event"}) {
    behind.remove_prefix(behind.starts_with(word) ? word.size() : 0);
  }
  if (behind.empty() || std::string_view(".!,;)]'\"").find(behind.front()) != kNotFound) {
    return true;
  }
  if (behind.front() == ':' || behind.front() == '=') {
    const std::string_view value = trimmed(behind.substr(1));
    return value.empty() || !is_digit(value.front());
  }
  return starts_with_any(behind, kCircumstances);
}

/// The end of the words in a sentence of the program that say that memory ran out.
std::optional<std::size_t> end_of_lack(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kBegins = {
      "out of memory",      "ran out of memory",        "ran out of gpu memory", "ran out of cuda memory",
      "cuda out of memory", "hip out of memory",        "xpu out of memory",     "mps backend out of memory",
      "gpu out of memory",  "cuda error: out of memory"};
  const std::string small = lower(text);
  const auto at_begin = [&](std::size_t from) -> std::optional<std::size_t> {
    for (const std::string_view begin : kBegins) {
      if (std::string_view(small).substr(from).starts_with(begin) && ends_there(text.substr(from + begin.size()))) {
        return from + begin.size();
      }
    }
    return std::nullopt;
  };
  if (const auto end = at_begin(0)) {
    return end;
  }
  constexpr std::string_view kFull = "out of memory. tried to allocate ";  // the original message, whoever quotes it
  const std::size_t full = small.find(kFull);
  if (full != kNotFound && full + kFull.size() < small.size() && is_digit(small[full + kFull.size()])) {
    return full + kFull.size();
  }
  static constexpr std::array<std::string_view, 7> kOfFailures = {"fail",  "error", "exception", "crash",
                                                                  "abort", "fatal", "oom"};
  const std::size_t colon = small.find(": ");
  const bool failing = colon != kNotFound && contains_any(std::string_view(small).substr(0, colon), kOfFailures);
  return failing && !is_advice(text.substr(0, colon)) ? at_begin(colon + 2) : std::nullopt;
}

std::optional<FailureFacts> by_sentence(const LogMessage& said) {
  static constexpr std::array<std::string_view, 9> kGoesOn = {
      "skipping", "retry", "trying again", "reducing", "halving", "falling back", "recover", "continuing", "smaller"};
  constexpr std::string_view kWords = "ut of memory";
  const std::size_t at = said.text.find(kWords);
  const bool counted = at != kNotFound && !ends_there(said.text.substr(at + kWords.size()));
  const Lack in_error = said.level == Level::kError && !counted ? lack_in(said.text) : Lack::kNone;
  const auto told = end_of_lack(said.text);
  if (!told && in_error == Lack::kNone) {
    return std::nullopt;
  }
  FailureFacts facts;
  facts.lack = in_error != Lack::kNone ? in_error : device_or_host(said.text);
  facts.hint = said.level == Level::kBelowError || contains_any(lower(said.text.substr(told.value_or(0))), kGoesOn);
  return facts;
}

/// "train.py: error: the following arguments are required: --data", by which argparse ends a program.
bool is_usage_error(std::string_view line) {
  const std::size_t at = line.find(".py: error: ");
  return at != kNotFound && line.substr(0, at).find_first_of(" :[(") == kNotFound;
}

}  // namespace

FailureFacts facts_of_message(std::string_view message) {
  if (const auto facts = by_form(message)) {
    return *facts;
  }
  FailureFacts facts;
  facts.speaker = Speaker::kPython;
  facts.lack = lack_in(message);
  facts.blame = facts.lack == Lack::kNone ? blame_in(message) : Blame::kOwn;
  return facts;
}

std::optional<FailureLine> failure_in(std::string_view line) {
  if (is_usage_error(line)) {
    FailureFacts facts;
    facts.speaker = Speaker::kPython;
    return FailureLine{facts, trimmed(line)};
  }
  const LogMessage said = detail::message_in(line);
  auto facts = by_form(said.text);
  facts = facts ? facts : by_exception(said);
  facts = facts ? facts : by_sentence(said);
  if (!facts) {
    return std::nullopt;
  }
  facts->rank = facts->rank ? facts->rank : said.rank;
  return FailureLine{*facts, said.text};
}

bool is_error_line(std::string_view line) { return detail::message_in(line).level == Level::kError; }

}  // namespace unidle::logs
