#include "unidle/diagnose/detail/output.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <csignal>
#include <system_error>
#include <vector>

#include "unidle/base/characters.h"
#include "unidle/base/printable.h"

namespace unidle::diagnose::detail {

namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last):";
/// torchrun's own exception at the end of a run of which a process failed.
constexpr std::string_view kLauncher = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError";
constexpr std::size_t kLongestLine = 2000;  // more than any line worth quoting

/// What a line says: PyTorch begins each of a rank's last words with "[rank3]: ".
std::string_view without_rank(std::string_view line) {
  constexpr std::string_view kBegin = "[rank";
  constexpr std::string_view kEnd = "]: ";
  const std::size_t end = line.starts_with(kBegin) ? line.find(kEnd) : std::string_view::npos;
  const bool number =
      end != std::string_view::npos && end > kBegin.size() &&
      std::all_of(line.begin() + kBegin.size(), line.begin() + static_cast<std::ptrdiff_t>(end), is_digit);
  return number ? line.substr(end + kEnd.size()) : line;
}

/// Lines without their ends and colours; a carriage return starts a new one, as progress bars mean it.
std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::string line;
  std::string scratch;
  const auto keep = [&] {
    lines.emplace_back(without_rank(without_escapes(line, scratch)).substr(0, kLongestLine));
    line.clear();
  };
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      keep();
    } else {
      line += c;
    }
  }
  keep();
  return lines;
}

bool blank(const std::string& line) {
  return std::all_of(line.begin(), line.end(), [](unsigned char c) { return std::isspace(c) != 0; });
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// "train.py:78" of `  File "/home/a/train.py", line 78, in main`; nothing for frames of libraries.
std::optional<std::string> own_frame(const std::string& line) {
  static constexpr std::string_view kFile = "File \"";
  static constexpr std::string_view kLine = "\", line ";
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos || line.compare(begin, kFile.size(), kFile) != 0) {
    return std::nullopt;
  }
  const std::size_t path_begin = begin + kFile.size();
  const std::size_t path_end = line.find(kLine, path_begin);
  if (path_end == std::string::npos) {
    return std::nullopt;
  }
  const std::string path = line.substr(path_begin, path_end - path_begin);
  static constexpr std::array<std::string_view, 4> kLibraries = {"site-packages", "dist-packages", "/lib/python",
                                                                 "<frozen"};
  for (const std::string_view library : kLibraries) {
    if (path.find(library) != std::string::npos) {
      return std::nullopt;
    }
  }
  const std::size_t number = path_end + kLine.size();
  std::size_t end = number;
  while (end < line.size() && is_digit(line[end])) {
    ++end;
  }
  return end == number ? std::nullopt : std::optional(path + ":" + line.substr(number, end - number));
}

/// True for "epoch 3", "Epochs: 3", "step=40": the word by itself, a number at most three signs behind it.
bool counts(const std::string& line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
    std::size_t next = at + word.size();
    next += next < line.size() && line[next] == 's' ? 1 : 0;
    if (at > 0 && is_word(line[at - 1])) {
      continue;
    }
    for (int signs = 0; signs < 3 && next < line.size() && !is_word(line[next]); ++signs) {
      ++next;
    }
    const bool apart = next > 0 && next < line.size() && !is_word(line[next - 1]);
    if (apart && is_digit(line[next])) {
      return true;
    }
  }
  return false;
}

/// True for "12.5it/s" and "2 s/it".
bool has_rate(const std::string& line) {
  for (const std::string_view unit : {"it/s", "s/it"}) {
    const std::size_t at = line.find(unit);
    if (at != std::string::npos && at > 0 &&
        (is_digit(line[at - 1]) || (line[at - 1] == ' ' && at > 1 && is_digit(line[at - 2])))) {
      return true;
    }
  }
  return false;
}

/// A line that training prints as it goes: "step 40 loss ...", "epoch 3/10", "12it/s".
bool is_progress(const std::string& printed) {
  const std::string line = lower(printed);
  static constexpr std::array<std::string_view, 5> kWords = {"epoch", "step", "iter", "iteration", "batch"};
  return has_rate(line) ||
         std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) { return counts(line, word); });
}

/// The lines after a traceback's header: frames are indented, the first line that is not names the exception.
OutputFailure read_traceback(const std::vector<std::string>& lines, std::size_t at) {
  OutputFailure failure;
  std::size_t line = at + 1;
  for (; line < lines.size() && (blank(lines[line]) || lines[line].front() == ' '); ++line) {
    if (auto frame = own_frame(lines[line])) {
      failure.where = std::move(frame);
    }
  }
  failure.message = line < lines.size() ? lines[line] : "a traceback that was cut off";
  for (++line; line < lines.size(); ++line) {
    failure.went_on = failure.went_on || is_progress(lines[line]);
  }
  return failure;
}

/// The number that follows `words`.
std::optional<int> number_behind(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  int number = 0;
  if (at == std::string_view::npos ||
      std::from_chars(text.data() + at + words.size(), text.data() + text.size(), number).ec != std::errc()) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

std::optional<KilledRank> killed_rank(std::string_view tail) {
  const std::size_t begin = tail.rfind("Root Cause (first observed failure):");
  if (begin == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view block = tail.substr(begin);
  const auto rank = number_behind(block, "rank      : ");
  const auto signal = number_behind(block, "traceback : Signal ");
  if (!rank || !signal || *signal == SIGTERM) {
    return std::nullopt;
  }
  return KilledRank{*rank, *signal};
}

Blame blame_of(std::string_view message) {
  constexpr std::array<std::string_view, 4> kOfPeers = {"Connection closed by peer", "Connection reset by peer",
                                                        "ncclRemoteError", "NCCL communicator was aborted"};
  if (message.starts_with(kLauncher)) {
    return Blame::kLauncher;
  }
  const bool peer = std::any_of(kOfPeers.begin(), kOfPeers.end(),
                                [&](std::string_view words) { return message.find(words) != std::string_view::npos; });
  return peer ? Blame::kPeer : Blame::kOwn;
}

std::optional<OutputFailure> find_failure(std::string_view tail) {
  const std::vector<std::string> lines = split_lines(tail);
  std::optional<OutputFailure> consequence;
  for (std::size_t i = lines.size(); i-- > 0;) {
    // What Python ignores, mostly in destructors while it shuts down, is no failure of the run.
    const bool ignored = i > 0 && lines[i - 1].starts_with("Exception ignored in");
    if (lines[i].starts_with(kTraceback) && !ignored) {
      OutputFailure failure = read_traceback(lines, i);
      if (blame_of(failure.message) == Blame::kOwn || failure.went_on) {
        return failure.went_on && consequence ? consequence : std::optional(std::move(failure));
      }
      if (!consequence || blame_of(failure.message) < blame_of(consequence->message)) {
        consequence = std::move(failure);
      }
    }
  }
  if (consequence) {
    return consequence;
  }
  const auto last = std::find_if_not(lines.rbegin(), lines.rend(), blank);
  if (last != lines.rend() && (last->starts_with("unidle: ") || last->starts_with("unidle-train: "))) {
    return OutputFailure{*last, std::nullopt, false};
  }
  return std::nullopt;
}

}  // namespace unidle::diagnose::detail
