#include "unidle/monitor/monitor.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "unidle/base/environment.h"
#include "unidle/base/error.h"
#include "unidle/base/handle.h"
#include "unidle/base/json.h"
#include "unidle/base/units.h"
#include "unidle/monitor/collector.h"
#include "unidle/monitor/exporter.h"
#include "unidle/monitor/lines.h"
#include "unidle/monitor/screen.h"
#include "unidle/monitor/summary.h"
#include "unidle/monitor/terminal.h"
#include "unidle/monitor/web.h"

namespace unidle::monitor {

namespace {

/// How often to check at the start whether the devices are found.
constexpr std::int64_t kDevicePoll_ns = 20 * kNsPerMs;

/// Blocks the signals that end the session and receives them through a file descriptor. Restores the mask at the end.
class StopSignals {
 public:
  StopSignals() {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    struct sigaction hang_up {};
    if (::sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN) {  // keep running under nohup
      sigaddset(&mask, SIGHUP);
    }
    ::pthread_sigmask(SIG_BLOCK, &mask, &before_);
    fd_.reset(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_) {
      throw system_error(ErrorCode::kIo, "signalfd", "cannot be made", errno);
    }
  }
  ~StopSignals() {
    // Discard a second Ctrl-C that came while the summary was printed.
    struct signalfd_siginfo info {};
    while (::read(fd_.get(), &info, sizeof info) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  int fd() const { return fd_.get(); }

 private:
  sigset_t before_{};
  UniqueFd fd_;
};

class Session {
 public:
  explicit Session(const Options& options)
      : options_(options),
        exporter_(options.listen.empty() ? nullptr : std::make_unique<Exporter>(options.listen)),
        web_(options.web.empty() ? nullptr : std::make_unique<WebView>(options.web, options.language)),
        collector_(system_clock(), {options.pid, options.record}) {
    if (exporter_) {
      options.note(translate(options.language, "serving {}", exporter_->url()) + "\n");
    }
    if (web_) {
      tell_of_page();
    }
    if (options.format == Format::kLive) {
      terminal_ = LiveTerminal::open();
      state_.unicode = terminal_ && terminal_->unicode();
      state_.language = state_.unicode ? options.language : Language::kEnglish;
    }
    format_ = options.format == Format::kLive && !terminal_ ? Format::kLines : options.format;
  }

  void run() {
    while (!stop_ && !collector_.devices_ready()) {
      wait(kDevicePoll_ns);
    }
    Clock& clock = system_clock();
    const std::int64_t start_ns = clock.now_ns();
    const std::int64_t end_ns = options_.seconds > 0 ? start_ns + nanoseconds(options_.seconds) : INT64_MAX;
    std::int64_t next_ns = start_ns;
    while (!stop_) {  // read once more at the end, so that one second has two readings
      sample();
      stop_ = stop_ || clock.now_ns() >= end_ns;
      next_ns = std::max(next_ns + options_.interval_ns, clock.now_ns());
      const std::int64_t until_ns = std::min(next_ns, end_ns);
      while (!stop_ && clock.now_ns() < until_ns) {
        wait(until_ns - clock.now_ns());
      }
      stop_ = stop_ || collector_.ended();
    }
    if (terminal_) {
      terminal_.reset();
      driver_hangs_ = false;
      report_driver_problem();
    }
    finish();
  }

 private:
  void sample() {
    latest_ = collector_.take();
    report_driver_problem();
    if (collector_.ended()) {
      return;  // a tree that has ended has no readings
    }
    summary_.add(latest_);
    histories_.add(latest_);
    if (exporter_) {
      exporter_->publish(latest_);
    }
    if (web_) {
      web_->publish(latest_, summary_.verdict(options_.language));
    }
    switch (format_) {
      case Format::kLive:
        if (!state_.paused) {
          shown_ = latest_;
          draw();
        }
        break;
      case Format::kLines: print(plain_lines(latest_, options_.language) + "\n"); break;
      case Format::kCsv:
        if (!header_written_) {
          header_written_ = true;
          print(csv_.header(latest_) + "\n");
        }
        print(csv_.row(latest_) + "\n");
        break;
      case Format::kJson: print(json_text(sample_json(latest_), -1) + "\n"); break;
      case Format::kSilent: break;
    }
  }

  /// The address of the page, and the way to it for a person who is logged in from elsewhere.
  void tell_of_page() {
    options_.note(translate(options_.language, "the page is at {} until this ends (Ctrl-C)", web_->url()) + "\n");
    if (std::getenv("SSH_CONNECTION") != nullptr && web_->url().starts_with("http://127.0.0.1:")) {
      const std::string command = fmt::format("ssh -N -L {0}:127.0.0.1:{0} {1}", web_->port(), host_name());
      options_.note(translate(options_.language, "to see it from where you logged in: {}", command) + "\n");
    }
  }

  /// Reports each driver problem once; in the live view after the terminal is restored.
  void report_driver_problem() {
    const auto problem = collector_.driver_problem();
    if (problem && !driver_hangs_ && !terminal_) {
      options_.note(translate(options_.language, "{}: the host alone is watched", *problem) + "\n");
    }
    driver_hangs_ = problem.has_value();
  }

  void print(const std::string& text) { stop_ = stop_ || !options_.print(text); }

  void draw() { terminal_->draw(layout(shown_, histories_, state_, terminal_->rows(), terminal_->columns())); }

  /// Waits until the time is up, a signal arrives or a key is pressed.
  void wait(std::int64_t wait_ns) {
    std::array<struct pollfd, 2> files = {{{signals_.fd(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
    const auto milliseconds = static_cast<int>(std::min<std::int64_t>(wait_ns / kNsPerMs + 1, 3'600'000));
    const int ready = ::poll(files.data(), terminal_ ? 2 : 1, milliseconds);
    if (ready > 0 && (files[0].revents & POLLIN) != 0) {
      stop_ = true;
      return;
    }
    if (!terminal_) {
      return;
    }
    if (ready > 0 && (files[1].revents & (POLLHUP | POLLERR)) != 0) {
      stop_ = true;  // the terminal is gone
      return;
    }
    bool changed = false;
    while (const auto key = terminal_->key()) {
      changed = true;
      take_key(*key);
    }
    if (changed && !stop_) {
      draw();
    }
  }

  void take_key(int key) {
    switch (key) {
      case 'q':
      case 'Q': stop_ = true; break;
      case 'h':
      case '?': state_.help = !state_.help; break;
      case 's': state_.sort = next(state_.sort); break;
      case 'p':
      case ' ':
        state_.paused = !state_.paused;
        shown_ = latest_;
        break;
      default: break;
    }
  }

  void finish() {
    if (format_ == Format::kJson) {
      options_.print(json_text(summary_.to_json(), -1) + "\n");
    } else if (format_ == Format::kCsv) {
      options_.note(summary_.to_text(options_.width, options_.language));
    } else {
      options_.print(summary_.to_text(options_.width, options_.language));
    }
  }

  const Options& options_;
  StopSignals signals_;  // blocks signals, so it comes before any thread starts
  /// Comes before a driver can hang while holding the dynamic loader's lock, which name lookup needs.
  std::unique_ptr<Exporter> exporter_;
  std::unique_ptr<WebView> web_;
  Collector collector_;
  std::unique_ptr<LiveTerminal> terminal_;
  Format format_ = Format::kLines;
  Summary summary_;
  Histories histories_;
  ViewState state_;
  CsvWriter csv_;
  bool header_written_ = false;
  Snapshot latest_;
  Snapshot shown_;
  bool stop_ = false;
  bool driver_hangs_ = false;
};

}  // namespace

void watch(const Options& options) { Session(options).run(); }

}  // namespace unidle::monitor
