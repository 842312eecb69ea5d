#include "unidle/base/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <system_error>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/layout.h"
#include "unidle/base/printable.h"
#include "unidle/base/standard_streams.h"
#include "unidle/base/units.h"

namespace unidle {

bool use_colour(std::FILE* stream) {
  const char* disabled = std::getenv("NO_COLOR");
  return (disabled == nullptr || *disabled == '\0') && ::isatty(::fileno(stream)) == 1;
}

int terminal_width(std::FILE* stream) {
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  if (const char* columns = std::getenv("COLUMNS")) {
    if (const int value = std::atoi(columns); value >= 20) {
      return value;
    }
  }
  return 80;
}

namespace {

/// The marker before the parameters of a style.
const std::string& style_mark() {
  static const std::string kMark = [] {
    std::uint64_t drawn[2] = {};
    if (::getrandom(drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn) {
      drawn[0] = static_cast<std::uint64_t>(system_clock().now_ns());
      drawn[1] = static_cast<std::uint64_t>(::getpid());
    }
    return fmt::format("\x1b{{{:x}{:x}:", drawn[0], drawn[1]);
  }();
  return kMark;
}

}  // namespace

std::string painted(std::string_view text, std::string_view parameters) {
  return fmt::format("{0}{1}m{2}{0}0m", style_mark(), parameters, text);
}

namespace {

/// Throws, unless the reader has gone away.
void throw_unless_reader_gone(int error_number) {
  if (error_number != EPIPE) {
    throw Error(ErrorCode::kIo, "standard output",
                "cannot be written: " + std::generic_category().message(error_number),
                "the answer is cut off; make room or write it elsewhere");
  }
}

}  // namespace

void write_to(std::FILE* stream, std::string_view text) {
  const std::string& mark = style_mark();
  std::string out;
  for (;;) {
    const std::size_t styled = text.find(mark);
    out += printable(text.substr(0, styled));
    if (styled == std::string_view::npos) {
      break;
    }
    text.remove_prefix(styled + mark.size());
    const std::size_t end = std::min(text.find('m'), text.size());
    out += fmt::format("\x1b[{}m", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (stream == stdout && !out.empty() && !is_given_stream(STDOUT_FILENO)) {
    throw_unless_reader_gone(EBADF);
  }
  const bool whole = std::fwrite(out.data(), 1, out.size(), stream) == out.size();
  if (!whole && stream != stderr) {
    throw_unless_reader_gone(errno);
  }
}

bool flush_output() {
  if (std::fflush(stdout) == 0) {
    return std::ferror(stdout) == 0;
  }
  throw_unless_reader_gone(errno);
  return false;
}

void say_error(std::string_view program, std::string_view text) noexcept {
  try {
    write_to(stderr, fmt::format("{}: {}\n", program, printable_line(text)));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // There is nobody left to report to.
  }
}

std::string wrap(std::string_view text, int width, int indent) {
  const std::string line_break = '\n' + std::string(static_cast<std::size_t>(indent), ' ');
  std::istringstream words{std::string(text)};
  std::string out;
  std::string word;
  int column = 0;
  bool line_is_empty = true;
  while (words >> word) {
    const int length = display_width(word);
    if (!line_is_empty && column + 1 + length > width) {
      out += line_break;
      column = indent;
      line_is_empty = true;
    }
    if (!line_is_empty) {
      out += ' ';
      ++column;
    }
    out += word;
    column += length;
    line_is_empty = false;
  }
  return out;
}

namespace {

constexpr std::int64_t kQuietNs = 2 * kNsPerSecond;
constexpr std::int64_t kRedrawNs = 100 * kNsPerMs;

}  // namespace

Progress::Progress(std::string label, std::uint64_t total)
    : label_(std::move(label)),
      total_(total),
      start_ns_(system_clock().now_ns()),
      terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (drawn_ns_ != 0) {
    std::fputs("\r\x1b[K", stderr);
  }
}

bool Progress::due() const {
  if (!terminal_) {
    return false;
  }
  const std::int64_t now = system_clock().now_ns();
  return now - start_ns_ >= kQuietNs && now - drawn_ns_ >= kRedrawNs;
}

void Progress::update(std::uint64_t done, std::string_view note) {
  if (!due()) {
    return;
  }
  const std::int64_t now = system_clock().now_ns();
  drawn_ns_ = now;
  const std::string line =
      progress_line(label_, done, total_, note, seconds(now - start_ns_), terminal_width(stderr) - 1);
  std::fputs(fmt::format("\r\x1b[K{}", line).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace unidle
