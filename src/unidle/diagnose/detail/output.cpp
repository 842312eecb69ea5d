#include "unidle/diagnose/detail/output.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <vector>

namespace unidle::diagnose::detail {

namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last):";
// More than any line worth quoting, and short enough for std::regex, which recurses.
constexpr std::size_t kLongestLine = 2000;

/// Lines without their ends; a carriage return starts a new one, as progress bars mean it.
std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::string line;
  const auto keep = [&] {
    lines.push_back(line.substr(0, kLongestLine));
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

/// "train.py:78" of `  File "/home/a/train.py", line 78, in main`; nothing for frames of libraries.
std::optional<std::string> own_frame(const std::string& line) {
  static const std::regex kFrame(R"re(^\s*File "([^"]+)", line (\d+))re");
  std::smatch match;
  if (!std::regex_search(line, match, kFrame)) {
    return std::nullopt;
  }
  const std::string path = match[1];
  static constexpr std::array<std::string_view, 4> kLibraries = {"site-packages", "dist-packages", "/lib/python",
                                                                 "<frozen"};
  for (const std::string_view library : kLibraries) {
    if (path.find(library) != std::string::npos) {
      return std::nullopt;
    }
  }
  return path + ":" + match[2].str();
}

/// A line that training prints as it goes: "step 40 loss ...", "epoch 3/10", "12it/s".
bool is_progress(const std::string& line) {
  static const std::regex kProgress(R"re(\b(epoch|step|iter|iteration|batch)s?\b\W{0,3}\d|\d\s?(it/s|s/it))re",
                                    std::regex::icase);
  return std::regex_search(line, kProgress);
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

}  // namespace

std::optional<OutputFailure> find_failure(std::string_view tail) {
  const std::vector<std::string> lines = split_lines(tail);
  for (std::size_t i = lines.size(); i-- > 0;) {
    // What Python ignores, mostly in destructors while it shuts down, is no failure of the run.
    const bool ignored = i > 0 && lines[i - 1].starts_with("Exception ignored in");
    if (lines[i].starts_with(kTraceback) && !ignored) {
      return read_traceback(lines, i);
    }
  }
  const auto last = std::find_if_not(lines.rbegin(), lines.rend(), blank);
  if (last != lines.rend() && (last->starts_with("unidle: ") || last->starts_with("unidle-train: "))) {
    return OutputFailure{*last, std::nullopt, false};
  }
  return std::nullopt;
}

}  // namespace unidle::diagnose::detail
