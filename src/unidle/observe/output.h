// The command's output: passed on byte by byte, its end kept.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "unidle/base/handle.h"

namespace unidle::observe {

/// Keeps the last `limit` bytes. Thread-safe.
class Tail {
 public:
  explicit Tail(std::size_t limit) : limit_(limit) {}
  void append(const char* bytes, std::size_t count);
  std::string text() const;
  /// Bytes ever appended: tells whether something is new.
  std::uint64_t total() const;

 private:
  mutable std::mutex mutex_;
  std::size_t limit_;
  std::string bytes_;
  std::uint64_t total_ = 0;
};

/// Copies from `from` to `to` (-1: nowhere) on a thread of its own, so that a reader of one stream that waits for the
/// other never blocks both. Where the reader of `to` goes away, `from` is closed, so that the command sees it.
class Pump {
 public:
  /// `is_terminal`: `from` is the controlling side of a pseudo-terminal.
  Pump(UniqueFd from, int to, Tail& tail);
  /// Ends as finish() does.
  ~Pump();
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  /// The command has ended: passes on what is there and ends, also when somebody still holds the other end.
  void finish();
  int from() const { return from_.get(); }

 private:
  void loop();
  bool wait_readable();
  bool copy_once(std::size_t limit);
  bool write_all(const char* bytes, std::size_t count);

  UniqueFd from_;
  int to_;
  Tail& tail_;
  UniqueFd wake_read_;
  UniqueFd wake_write_;
  std::thread thread_;
};

/// How the command's stdout and stderr are set up.
class OutputStreams {
 public:
  enum class Mode { kLeaveAlone, kPassOn, kKeepOnly };

  /// Throws kIo when neither pipe nor pseudo-terminal can be had.
  OutputStreams(Mode mode, std::size_t tail_bytes);

  /// The descriptor that the child must have as 1 or 2; -1 to leave it alone. Async-signal-safe.
  int child_end(int stream) const;
  /// After the fork, in the parent: closes the child's ends and starts passing on.
  void start();
  void finish();
  /// Gives pseudo-terminals the size that the real one has now.
  void resize();
  const Tail& tail(int stream) const { return *tails_[static_cast<std::size_t>(stream - 1)]; }
  bool is_shared() const { return shared_; }

 private:
  void make_channel(int stream, bool terminal);

  Mode mode_;
  bool shared_ = false;
  std::array<std::unique_ptr<Tail>, 2> tails_;
  std::array<UniqueFd, 2> ours_;
  std::array<UniqueFd, 2> childs_;
  std::array<bool, 2> terminal_ = {false, false};
  std::array<std::unique_ptr<Pump>, 2> pumps_;
};

/// Whether two descriptors are one and the same open file.
bool same_open_file(int a, int b);

}  // namespace unidle::observe
