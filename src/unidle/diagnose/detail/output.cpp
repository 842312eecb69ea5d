#include "unidle/diagnose/detail/output.h"

#include <array>
#include <optional>
#include <utility>

#include "unidle/base/characters.h"
#include "unidle/base/printable.h"
#include "unidle/base/split.h"
#include "unidle/logs/source.h"

namespace unidle::diagnose::detail {

namespace {

/// "train.py:78" from `  File "/home/a/train.py", line 78, in main`; nothing for library frames.
std::optional<std::string> own_frame(std::string_view line) {
  static constexpr std::string_view kFile = "File \"";
  static constexpr std::string_view kLine = "\", line ";
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos || !line.substr(begin).starts_with(kFile)) {
    return std::nullopt;
  }
  const std::size_t path_begin = begin + kFile.size();
  const std::size_t path_end = line.find(kLine, path_begin);
  if (path_end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string path(line.substr(path_begin, path_end - path_begin));
  static constexpr std::array<std::string_view, 4> kLibraries = {"site-packages", "dist-packages", "/lib/python",
                                                                 "<frozen"};
  for (const std::string_view library : kLibraries) {
    if (path.find(library) != std::string_view::npos) {
      return std::nullopt;
    }
  }
  const std::size_t number = path_end + kLine.size();
  std::size_t end = number;
  while (end < line.size() && is_digit(line[end])) {
    ++end;
  }
  return end == number ? std::nullopt : std::optional(path + ":" + std::string(line.substr(number, end - number)));
}

/// The innermost frame of the user's own code in a traceback.
std::optional<std::string> own_place(std::string_view traceback) {
  std::optional<std::string> where;
  for (const std::string_view line : split(traceback, '\n')) {
    if (auto frame = own_frame(line)) {
      where = std::move(frame);
    }
  }
  return where;
}

/// The last non-blank line.
std::string_view last_line(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) {
    return {};
  }
  text = text.substr(0, end + 1);
  return text.substr(text.rfind('\n') + 1);  // npos + 1 is 0
}

/// The order of lines of two streams is unknown, so a failure that the run did not survive is preferred.
void take(std::optional<PrintedFailure>& kept, std::optional<PrintedFailure> other) {
  if (other && (!kept || (kept->went_on && !other->went_on))) {
    kept = std::move(other);
  }
}

}  // namespace

PrintedFailure printed_failure(const logs::DecisiveFailure& decisive) {
  const logs::Failure& failure = *decisive.failure;
  return {failure.message, failure.is_traceback ? own_place(failure.quote.text) : std::nullopt, decisive.went_on,
          failure.facts};
}

PrintedEnd end_of_output(std::string_view tail) {
  logs::Source source("output", tail);
  logs::TextLog log = logs::read_text_log(source);
  log.has_both_streams = false;
  PrintedEnd end;
  if (const auto decisive = logs::decisive_failure(log); decisive.failure != nullptr) {
    end.failure = printed_failure(decisive);
  }
  if (const auto memory = logs::lack_of_memory(log); memory.failure != nullptr) {
    end.memory = printed_failure(memory);
  }
  const std::string last = without_escapes(last_line(tail));
  if (!end.failure && (last.starts_with("unidle: ") || last.starts_with("unidle-train: "))) {
    end.failure = PrintedFailure{last, std::nullopt, false, logs::facts_of_message(last)};
  }
  return end;
}

PrintedEnd printed_end(const Signals& signals) {
  if (signals.printed) {
    return *signals.printed;
  }
  PrintedEnd end = end_of_output(signals.error_tail);
  PrintedEnd other = end_of_output(signals.output_tail);
  take(end.failure, std::move(other.failure));
  take(end.memory, std::move(other.memory));
  return end;
}

}  // namespace unidle::diagnose::detail
