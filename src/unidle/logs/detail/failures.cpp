#include "unidle/logs/detail/failures.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "unidle/base/characters.h"
#include "unidle/base/substrings.h"
#include "unidle/logs/detail/claims.h"
#include "unidle/logs/detail/failure_forms.h"
#include "unidle/logs/detail/line_front.h"
#include "unidle/logs/detail/numbers.h"

namespace unidle::logs::detail {

namespace {

constexpr std::size_t kLongestQuote = 400;
constexpr std::size_t kLongestTraceback = std::size_t{16} << 10U;
constexpr std::size_t kLongestPrefix = 64;
constexpr std::size_t kLongestLine = 2000;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Whether the line is part of the frame that rich draws round a traceback.
bool is_drawn(std::string_view line) {
  return line.starts_with("│") || line.starts_with("╭") || line.starts_with("╰") || line.starts_with("┃");
}

/// Whether the line has the same prefix: "2024-03-05T10:00:01Z " and "2024-03-05T10:00:02Z " count as equal,
/// "[rank0]: " and "[rank1]: " do not.
bool has_prefix(std::string_view line, std::string_view prefix, std::optional<int> rank) {
  return differ_in_digits_only(line.substr(0, prefix.size()), prefix) && (!rank || message_in(line).rank == rank);
}

/// What stands before the other lines of a traceback: in a group of exceptions "  | " for "  + Exception Group ", in
/// torchrun's report "  " for "  traceback : ".
std::string prefix_of(std::string_view before_header) {
  constexpr std::string_view kGroup = "Exception Group ";
  if (before_header == "  traceback : ") {
    return "  ";
  }
  if (!before_header.ends_with(kGroup)) {
    return std::string(before_header);
  }
  before_header.remove_suffix(kGroup.size());
  std::string prefix(before_header);
  if (prefix.ends_with("+ ")) {
    prefix[prefix.size() - 2] = '|';
  }
  return prefix;
}

/// Whether the words "(most recent call last)" end a header here; a sentence goes on.
bool ends_header(std::string_view behind) {
  behind = trimmed(behind);
  return behind.empty() || std::string_view(":\\\"'").find(behind.front()) != std::string_view::npos ||
         static_cast<signed char>(behind.front()) < 0;  // what rich draws
}

/// The rest of a traceback that a program logs as one line of JSON, with "\n" for the ends of its lines; empty if it is
/// none.
std::string rest_in_json(std::string_view behind) {
  std::string text;
  if (!behind.starts_with(":\\n")) {
    return text;
  }
  for (std::size_t at = 3; at < behind.size() && behind[at] != '"' && text.size() < kLongestTraceback; ++at) {
    const bool escaped = behind[at] == '\\' && at + 1 < behind.size();
    at += escaped ? 1 : 0;
    text += escaped && behind[at] == 'n' ? '\n' : behind[at];
  }
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

/// "KeyError: 'x'", "KeyboardInterrupt", "queue.Empty": the last line of a traceback. Other lines inside it are output
/// of the program that came in between.
bool is_exception_line(std::string_view line) {
  line = trimmed(line);
  const auto end = std::ranges::find_if_not(line, [](char c) { return is_word(c) || c == '.'; });
  const auto size = static_cast<std::size_t>(end - line.begin());
  const bool named = size > 0 && !is_digit(line.front()) && line[size - 1] != '.';
  return named && (size == line.size() || line.substr(size).starts_with(": ") || line.substr(size) == ":");
}

/// Whether the line has an exception or a level; "val_error" and "error bars" are neither.
bool may_be_error(const LogLine& line) {
  return std::ranges::any_of(line.hits.all(), [&](const Hit& hit) {
    const std::string_view word = line.text.substr(hit.begin, 5);
    return hit.keyword->word == Word::kError && (word == "Error" || word == "ERROR");
  });
}

/// "Experiment 2 failed!", but not "failed: 0" or "failed to upload".
bool says_failed(const LogLine& line) {
  std::string_view text = trimmed(line.text);
  while (text.ends_with('!') || text.ends_with('.')) {
    text.remove_suffix(1);
  }
  return lower(text).ends_with(" failed") && text.find(" 0 ") == std::string_view::npos;
}

bool ends_clause(std::string_view rest) {
  return rest.empty() || std::string_view(".!,:;").find(rest.front()) != std::string_view::npos;
}

/// "Keyboard interruption. Exiting from early training"; not "stop it by a keyboard interrupt", "Keyboard interrupt
/// handler was removed" or "Interrupted by the user? Run again".
bool says_interrupted(const LogLine& line) {
  static constexpr std::array<std::string_view, 12> kWords = {"keyboard interrupt",
                                                              "keyboard interruption",
                                                              "keyboard interrupt received",
                                                              "keyboard interrupt detected",
                                                              "keyboard interrupt caught",
                                                              "interrupted by user",
                                                              "interrupted by the user",
                                                              "interrupted by keyboard",
                                                              "interrupted by ctrl-c",
                                                              "interrupted by ctrl+c",
                                                              "interrupted by a keyboard interrupt",
                                                              "interrupted by sigint"};
  const std::string message = lower(message_in(line.text).text);
  return std::ranges::any_of(kWords, [&](std::string_view words) {
    return message.starts_with(words) && ends_clause(std::string_view(message).substr(words.size()));
  });
}

/// How abseil, shells and srun report a SIGTERM.
bool says_terminated(std::string_view line) {
  static constexpr std::array<std::string_view, 4> kShapes = {"Terminated", "*line %n: %n Terminated *",
                                                              "zsh: terminated *", "srun: error: *: task*: Terminated"};
  FormNumbers ignored;
  return line.starts_with("*** SIGTERM received") ||
         std::ranges::any_of(kShapes, [&](std::string_view shape) { return has_shape(trimmed(line), shape, ignored); });
}

/// "Starting training", "Fold 2: start training"; not "To start training on other data run train.py".
bool starts_training(const LogLine& line) {
  static constexpr std::array<std::string_view, 3> kWords = {"starting training", "start training", "begin training"};
  const std::string text = lower(line.text);
  return contains(text, "开始训练") || std::ranges::any_of(kWords, [&](std::string_view words) {
           const std::size_t at = text.find(words);
           const std::string_view before = trimmed(std::string_view(text).substr(0, std::min(at, text.size())));
           return at != std::string::npos && (before.empty() || !is_letter(before.back()));
         });
}

/// Whether the counts are known to be far from their ends.
bool is_far_from_end(const TextLog& log) {
  constexpr double kNear = 0.8;
  const auto is_far = [](const Counter& one) { return one.total && one.last + 1 < kNear * *one.total; };
  const bool epochs = log.counter("epoch") != nullptr;
  return std::ranges::any_of(log.counters, [&](const Counter& one) {
    if (one.is_outer()) {
      return is_far(one) && one.restarts == 0;
    }
    const bool may_be_outer = one.kind == "step" || one.kind == "iteration";
    return !epochs && may_be_outer && one.restarts == 0 && is_far(one);
  });
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
      text.pop_back();  // a truncated first byte of a character
    }
  }
  return text;
}

Quote Failures::quote(const LogLine& line) const { return {quotable(line.text), line.number, log_.progress_lines}; }

void Failures::add(Failure failure) {
  failure.end_byte = failure.end_byte == 0 ? log_.bytes : failure.end_byte;
  std::vector<Failure>& all = log_.failures;
  if (all.size() == TextLog::kMostFailures) {
    const auto survived = std::find_if(
        all.begin(), all.end(), [&](const Failure& one) { return one.quote.progress_before < log_.progress_lines; });
    if (survived == all.end()) {
      return;  // the first failures explain most
    }
    all.erase(survived);
  }
  all.push_back(std::move(failure));
}

/// The traceback that a line belongs to: that of its process, otherwise the one whose lines have no prefix.
std::vector<Failures::Open>::iterator Failures::open_of(std::string_view line) {
  const auto own = std::find_if(open_.begin(), open_.end(), [&](const Open& one) {
    return !one.prefix.empty() && has_prefix(line, one.prefix, one.failure.facts.rank);
  });
  return own != open_.end()
             ? own
             : std::find_if(open_.begin(), open_.end(), [](const Open& one) { return !one.failure.facts.rank; });
}

/// Whether the line continues a traceback that output of the program interrupted.
bool Failures::goes_on(const Open& open, std::string_view line) {
  const bool frame = line.starts_with("  File \"") || line.starts_with("    ");
  return (frame && open.between < kMostBetween) || !exception_name(trimmed(line)).empty();
}

bool Failures::in_traceback(std::string_view line) {
  if (open_.empty()) {
    return false;
  }
  const auto open = open_of(line);
  if (open == open_.end()) {
    return false;
  }
  if (has_prefix(line, open->prefix, open->failure.facts.rank)) {
    line.remove_prefix(open->prefix.size());
  }
  if (line.starts_with("Traceback (most recent call last)")) {
    return false;  // two threads print theirs in turn
  }
  const bool message = !trimmed(line).empty() && line.front() != ' ' && line.front() != '\t' && !is_drawn(line);
  if (open->between > 0 ? !goes_on(*open, line) : message && !is_exception_line(line)) {
    if (open->between++ == 0) {
      open->first_between = line.substr(0, kLongestLine);
      open->failure.end_byte = log_.bytes;
    }
    if (open->between > kMostBetween) {
      const std::string first = open->first_between;
      end_traceback(open, first);
    }
    return false;
  }
  std::string& text = open->failure.quote.text;
  text.append(line.substr(0, kLongestLine)).append("\n");
  if (text.size() > kLongestTraceback) {
    const std::size_t header = text.find('\n') + 1;
    text.erase(header, text.size() - kLongestTraceback);
  }
  if (message) {
    if (open->between > 0) {
      open->failure.quote.progress_before = log_.progress_lines;  // what came in between is older
      open->failure.end_byte = log_.bytes;
    }
    end_traceback(open, line);
  }
  return true;
}

void Failures::begin_traceback(const LogLine& line, std::size_t at) {
  if (open_.size() == kMostOpen) {
    return;
  }
  Open open;
  open.prefix = at <= kLongestPrefix && !is_drawn(line.text) ? prefix_of(line.text.substr(0, at)) : "";
  open.failure.quote = {"Traceback (most recent call last):\n", line.number, log_.progress_lines};
  open.failure.is_traceback = true;
  open.failure.facts.rank = message_in(line.text).rank;
  open.failure.t_ns = now_ns_;
  open.ignored = ignored_line_ && *ignored_line_ + 1 == line.number;
  open.of_thread = announced_thread(line.number);
  if (open.of_thread) {
    --threads_;
    thread_line_ = line.number;
  }
  open_.push_back(std::move(open));
}

/// Whether the line is close behind "Exception in thread"; several threads may print theirs in turn.
bool Failures::announced_thread(std::uint64_t line) const {
  constexpr std::uint64_t kClose = 2;
  return threads_ > 0 && line <= thread_line_ + kClose * threads_;
}

void Failures::end_traceback(std::vector<Open>::iterator open, std::string_view message) {
  Failure failure = std::move(open->failure);
  const bool ignored = open->ignored;
  const bool of_thread = open->of_thread;
  const bool of_output = open->between > 0 && message == open->first_between;  // its own end is missing
  open_.erase(open);
  if (ignored) {
    return;
  }
  const auto rank = failure.facts.rank;
  failure.message = quotable(message);
  failure.facts = facts_of_message(trimmed(message));
  failure.facts.hint = failure.facts.hint || of_thread || of_output;
  failure.facts.rank = failure.facts.rank ? failure.facts.rank : rank;
  add(std::move(failure));
}

void Failures::finish(std::optional<std::int64_t> last_ns) {
  while (!open_.empty()) {
    const Open& open = open_.front();
    const std::string message = open.between == 0 ? "a traceback that was cut off" : open.first_between;
    end_traceback(open_.begin(), message);
  }
  // Programs also end their own processes so.
  if (sigterm_ && !log_.end && !log_.claim && !log_.is_whole && log_.failures.empty() &&
      progress_after(log_, sigterm_->quote) == 0) {
    log_.end = sigterm_;
  }
  if (!log_.end || progress_after(log_, log_.end->quote) == 0) {
    return;
  }
  const bool claimed = log_.claim && log_.claim->progress_before > log_.end->quote.progress_before;
  const bool whole = std::any_of(log_.counters.begin(), log_.counters.end(), [](const Counter& one) {
    return one.total && one.restarts == 0 && one.last >= *one.total;
  });
  if (claimed || whole || went_on(*log_.end, last_ns)) {
    begin_next_attempt();
  }
}

/// Whether training continued after the scheduler's message; a run may print steps for a while before it ends.
bool Failures::went_on(const SchedulerEnd& end, std::optional<std::int64_t> until_ns) const {
  constexpr std::int64_t kGraceNs = std::int64_t{120} * 1'000'000'000;
  constexpr std::int64_t kGraceLines = 100;  // if later lines have no times
  const std::int64_t after = progress_after(log_, end.quote);
  const bool timed = end.t_ns && until_ns && *until_ns > *end.t_ns;
  return after > 0 && (timed ? *until_ns - *end.t_ns > kGraceNs : after > kGraceLines);
}

void Failures::begin_next_attempt() {
  if (log_.earlier.size() < TextLog::kMostEarlier) {
    log_.earlier.push_back(std::move(*log_.end));
  }
  log_.end.reset();
  threads_ = 0;
}

void Failures::scheduler(const LogLine& line) {
  if (says_terminated(line.text)) {
    sigterm_ = SchedulerEnd{LogEnd::kCancelled, quote(line), now_ns_};
    return;
  }
  const bool by_slurm = contains(line.text, "CANCELLED") && contains(line.text, "***");
  const bool by_seff = contains(line.text, "State:") && contains(line.text, "(exit code");
  const bool by_person = contains(line.text, "received SIGINT") || says_interrupted(line);
  const std::string_view text = trimmed(line.text);
  if (!by_slurm && !by_seff && !by_person && !text.starts_with("=>> PBS: ") && !text.starts_with("TERM_RUNLIMIT: ") &&
      !text.starts_with("TERM_OWNER: ")) {
    return;
  }
  SchedulerEnd end{line.hits.has(Word::kTimeLimit)       ? LogEnd::kTimeLimit
                   : contains(line.text, "PREEMPTION")   ? LogEnd::kPreempted
                   : contains(line.text, "NODE FAILURE") ? LogEnd::kNodeFailed
                                                         : LogEnd::kCancelled,
                   quote(line), now_ns_};
  if (log_.end && went_on(*log_.end, now_ns_)) {
    begin_next_attempt();
  }
  if (!log_.end || log_.end->end != LogEnd::kTimeLimit) {  // the scheduler also reports steps of the job
    log_.end = std::move(end);
  }
}

/// torchrun reports the process that failed first: its rank on one line, its exit code on the next.
bool Failures::root_cause(const LogLine& line) {
  if (contains(line.text, "Root Cause (first observed failure)")) {
    root_cause_ = true;
    return true;
  }
  const std::string_view text = message_in(line.text).text;
  FormNumbers numbers;
  if (root_cause_ && has_shape(text, "rank : %r (local_rank: %n)", numbers)) {
    log_.first_rank = numbers.rank;
    return true;
  }
  if (!has_shape(text, "exitcode : %x (pid: %n)", numbers)) {
    return false;
  }
  if (root_cause_ && numbers.exit.value_or(0) < 0 && numbers.exit != -SIGTERM && numbers.exit != -SIGABRT) {
    Failure failure{{}, quote(line), quotable(text), false, now_ns_};
    failure.facts.speaker = Speaker::kLauncher;
    failure.facts.signal = -*numbers.exit;
    failure.facts.rank = log_.first_rank;
    failure.facts.lack = failure.facts.signal == SIGBUS ? Lack::kSharedMemory : Lack::kNone;
    add(std::move(failure));
  }
  root_cause_ = false;
  return true;
}

void Failures::failure(const LogLine& line) {
  const bool error = line.hits.has(Word::kError) && may_be_error(line);
  const bool words = line.hits.has(Word::kFailure);
  if ((!error && !words) || (words && root_cause(line))) {
    return;
  }
  if (const auto told = failure_in(line.text)) {
    Failure failure{told->facts, quote(line), quotable(told->text), false, now_ns_};
    add(std::move(failure));
  }
  if (error && is_error_line(line.text)) {
    ++log_.error_lines;
    log_.error = quote(line);
  }
}

/// A program that printed a line before its last progress may print it after each part.
bool Failures::is_first_end(FirstEnd& first) const {
  const Counter* epochs = log_.counter("epoch");
  const std::int64_t restarts = epochs == nullptr ? 0 : epochs->restarts;
  if (!first.progress || restarts != first.restarts) {
    first = {log_.progress_lines, restarts};
  }
  return *first.progress == log_.progress_lines;
}

void Failures::claim(const LogLine& line) {
  const bool bare = is_bare_end(line);
  const Claim claim = line.hits.has_any(Word::kSuccess, Word::kEarlyStop) ? claim_of(line) : Claim::kNone;
  bool ends = claim == Claim::kEnd || (line.hits.has(Word::kEnd) && ends_all(line));
  if (bare) {
    ends = is_first_end(bare_end_);
  } else if (!ends && claim == Claim::kPart) {
    ends = is_first_end(part_end_) && !is_far_from_end(log_);
  }
  if (!ends || (bare && log_.claim && log_.claim->progress_before == log_.progress_lines)) {
    return;
  }
  log_.claim = quote(line);
  log_.claim_names_training = names_training(line);
  log_.before_claim = log_.counted();
}

void Failures::read(const LogLine& line, std::optional<std::int64_t> now_ns) {
  const Hits& hits = line.hits;
  now_ns_ = now_ns;
  if (hits.has(Word::kIgnored)) {
    ignored_line_ = line.number;
  }
  if (hits.has(Word::kThread)) {
    threads_ = announced_thread(line.number) ? threads_ + 1 : 1;
    thread_line_ = line.number;
  }
  if (const Hit* hit = hits.first(Word::kTraceback)) {
    const std::string_view behind = line.text.substr(hit->end);
    if (const std::string rest = rest_in_json(behind); !rest.empty() && open_.size() < kMostOpen) {
      begin_traceback(line, hit->begin);
      open_.back().failure.quote.text += rest + "\n";
      end_traceback(open_.end() - 1, rest.substr(rest.rfind('\n') + 1));
      return;
    }
    // Of Paddle's frames the message follows far below.
    if (ends_header(behind) && !line.text.substr(0, hit->begin).ends_with("C++ ")) {
      begin_traceback(line, hit->begin);
    }
    return;
  }
  if (log_.claim && hits.has(Word::kBegin) && starts_training(line)) {
    log_.claim.reset();
  }
  if (hits.has_any(Word::kCancelled, Word::kTimeLimit)) {
    scheduler(line);
  }
  if (hits.has_any(Word::kFailure, Word::kError)) {
    failure(line);
  }
  if (hits.has(Word::kFailed) && !hits.has_any(Word::kSuccess, Word::kEarlyStop) && says_failed(line)) {
    log_.claim.reset();  // it was about an earlier part
    log_.failed_part = quote(line);
  } else if (hits.has_any(Word::kSuccess, Word::kEarlyStop, Word::kEnd, Word::kFailure)) {
    claim(line);
  }
}

}  // namespace unidle::logs::detail
