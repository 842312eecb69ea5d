#include "unidle/logs/detail/failures.h"

#include <algorithm>

#include "unidle/logs/detail/numbers.h"
#include "unidle/logs/detail/progress.h"

namespace unidle::logs::detail {

namespace {

constexpr std::size_t kLongestQuote = 400;
constexpr std::size_t kLongestTraceback = std::size_t{16} << 10U;
constexpr std::size_t kLongestPrefix = 64;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// "RuntimeError: ..." or "torch.cuda.OutOfMemoryError: ..." at the front of the line, the hit being its "error".
bool is_exception_line(std::string_view line, const Hit& hit) {
  if (hit.end >= line.size() || line[hit.end] != ':' || line[hit.begin] != 'E') {
    return false;
  }
  return hit.begin > 0 &&
         std::all_of(line.begin(), line.begin() + hit.begin, [](char c) { return is_word(c) || c == '.'; });
}

/// " - ERROR - ", "[ERROR]", "ERROR:": a level, not a word of the text.
bool is_error_level(std::string_view line, const Hit& hit) {
  const bool upper = line.substr(hit.begin, 5) == "ERROR";
  const auto apart = [&](std::size_t at) { return at >= line.size() || !is_word(line[at]); };
  return upper && apart(hit.end) && (hit.begin == 0 || apart(hit.begin - 1));
}

/// What only wraps the failure of another process.
bool is_wrapper(std::string_view traceback) {
  return contains(traceback, "ChildFailedError") || contains(traceback, "CalledProcessError");
}

}  // namespace

std::string quotable(std::string_view line) {
  std::string text;
  for (const char c : trimmed(line).substr(0, kLongestQuote)) {
    text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  if (line.size() > kLongestQuote) {
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0U) == 0x80U) {
      text.pop_back();
    }
    if (!text.empty() && static_cast<signed char>(text.back()) < 0) {
      text.pop_back();  // the first byte of a character that was cut
    }
  }
  return text;
}

Quote Failures::quote(const LogLine& line) const { return {quotable(line.text), line.number, log_.progress_lines}; }

bool Failures::in_traceback(std::string_view line) {
  if (!open_) {
    return false;
  }
  if (!prefix_.empty() && line.starts_with(prefix_)) {
    line.remove_prefix(prefix_.size());
  }
  const bool message = !trimmed(line).empty() && line.front() != ' ' && line.front() != '\t';
  traceback_.text.append(line.substr(0, 2000)).append("\n");
  if (traceback_.text.size() > kLongestTraceback) {
    const std::size_t header = traceback_.text.find('\n') + 1;
    traceback_.text.erase(header, traceback_.text.size() - kLongestTraceback);
  }
  if (message) {
    end_traceback();
  }
  return !message;  // the message itself may tell more: out of memory
}

void Failures::begin_traceback(const LogLine& line, std::size_t at) {
  if (ignored_line_ && *ignored_line_ + 1 == line.number) {
    return;  // Python itself ignores it, mostly in destructors while it shuts down
  }
  prefix_ = at <= kLongestPrefix ? std::string(line.text.substr(0, at)) : "";
  traceback_ = {"Traceback (most recent call last):\n", line.number, log_.progress_lines};
  open_ = true;
}

void Failures::end_traceback() {
  open_ = false;
  if (!log_.traceback || !is_wrapper(traceback_.text)) {
    log_.traceback = traceback_;
  }
}

void Failures::finish() {
  if (open_) {
    end_traceback();
  }
}

void Failures::scheduler(const LogLine& line) {
  const bool limit = line.hits.has(Word::kTimeLimit);
  if (limit || (line.hits.has(Word::kCancelled) && contains(line.text, "***"))) {
    const LogEnd end = limit                                 ? LogEnd::kTimeLimit
                       : contains(line.text, "PREEMPTION")   ? LogEnd::kPreempted
                       : contains(line.text, "NODE FAILURE") ? LogEnd::kNodeFailed
                                                             : LogEnd::kCancelled;
    if (log_.end != LogEnd::kTimeLimit) {  // steps of the job are reported as well
      log_.end = end;
      log_.end_line = quote(line);
    }
  }
  if (const Hit* hit = line.hits.first(Word::kExitCode)) {
    std::string_view rest = line.text.substr(std::min<std::size_t>(hit->end + 1, line.text.size()));
    if (const auto code = take_digits(rest); code && *code > 0 && *code < 256) {
      log_.exit_code = static_cast<int>(*code);
      log_.crash = log_.crash ? log_.crash : quote(line);
    }
  }
}

void Failures::memory(const LogLine& line) {
  if (line.hits.has(Word::kOomKill)) {
    log_.host_out_of_memory = quote(line);
  } else if (line.hits.has(Word::kOutOfMemory)) {
    const bool device = contains(line.text, "CUDA") || contains(line.text, "HIP") || contains(line.text, "cuda") ||
                        contains(line.text, "GPU");
    (device ? log_.out_of_memory : log_.host_out_of_memory) = quote(line);
  }
}

void Failures::crash(const LogLine& line) {
  const Hit* killed = line.hits.first(Word::kKilled);
  const bool by_shell = killed != nullptr && line.text.substr(killed->begin, 6) == "Killed" && line.text.size() < 300 &&
                        (contains(line.text, ": line ") || trimmed(line.text) == "Killed");
  const bool started = !line.hits.has(Word::kNotStarted) || contains(line.text, "python");
  if (by_shell || line.hits.has(Word::kCrash) || (line.hits.has(Word::kNotStarted) && started)) {
    log_.crash = quote(line);
  }
}

void Failures::error(const LogLine& line) {
  for (const Hit& hit : line.hits.all()) {
    if (hit.keyword->word != Word::kError) {
      continue;
    }
    if (is_exception_line(line.text, hit)) {
      log_.exception = quote(line);
    } else if (is_error_level(line.text, hit)) {
      ++log_.error_lines;
      log_.error = quote(line);
    }
    return;
  }
}

void Failures::claim(const LogLine& line) {
  const bool denied = contains(line.text, "not success") || contains(line.text, "without success") ||
                      contains(line.text, "success rate") || contains(line.text, "success_rate") ||
                      contains(line.text, "成功率") || contains(line.text, "未成功") || contains(line.text, "不成功");
  if (!denied) {
    log_.claim = quote(line);
  }
}

void Failures::read(const LogLine& line) {
  const Hits& hits = line.hits;
  if (hits.has(Word::kIgnored)) {
    ignored_line_ = line.number;
  }
  if (const Hit* hit = hits.first(Word::kTraceback)) {
    begin_traceback(line, hit->begin);
    return;
  }
  if (hits.has_any(Word::kCancelled, Word::kTimeLimit, Word::kExitCode)) {
    scheduler(line);
  }
  if (hits.has_any(Word::kOutOfMemory, Word::kOomKill)) {
    memory(line);
  }
  if (hits.has_any(Word::kKilled, Word::kCrash, Word::kNotStarted)) {
    crash(line);
  }
  if (hits.has(Word::kError)) {
    error(line);
  }
  if (hits.has(Word::kSuccess)) {
    claim(line);
  }
}

}  // namespace unidle::logs::detail
