#include "unidle/base/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <utility>

#include "unidle/base/clock.h"
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
int code_points(std::string_view text) {
  int count = 0;
  for (const char c : text) {
    count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  }
  return count;
}
}  // namespace

std::string wrap(std::string_view text, int width, int indent) {
  const std::string line_break = '\n' + std::string(static_cast<std::size_t>(indent), ' ');
  std::istringstream words{std::string(text)};
  std::string out;
  std::string word;
  int column = 0;
  bool line_is_empty = true;
  while (words >> word) {
    const int length = code_points(word);
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

void Progress::update(std::uint64_t done, std::string_view note) {
  const std::int64_t now = system_clock().now_ns();
  if (!terminal_ || now - start_ns_ < kQuietNs || now - drawn_ns_ < kRedrawNs) {
    return;
  }
  drawn_ns_ = now;
  const double share = total_ > 0 ? static_cast<double>(done) / static_cast<double>(total_) : 0;
  const int filled = static_cast<int>(share * 24);
  std::string line =
      fmt::format("{} [{:#<{}}{:.<{}}] {}/{} {}", label_, "", filled, "", 24 - filled, done, total_, note);
  if (done > 0 && done < total_) {
    const double left = seconds(now - start_ns_) * (1 / share - 1);
    line += fmt::format(" {} left", format_seconds(left));
  }
  fmt::print(stderr, "\r\x1b[K{}", line.substr(0, static_cast<std::size_t>(terminal_width(stderr) - 1)));
  std::fflush(stderr);
}

}  // namespace unidle
