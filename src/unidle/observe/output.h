// The command's stdout and stderr: its descriptors, and how their last bytes are kept.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "unidle/base/handle.h"
#include "unidle/observe/keeper.h"
#include "unidle/observe/tail.h"

namespace unidle::observe {

/// A regular file stays the command's own and is read back. In place of a pipe, a terminal, a socket or /dev/null the
/// command gets a pipe or pseudo-terminal, and a Keeper passes the bytes on. Any other device stays the command's own,
/// and its output is not kept.
class OutputStreams {
 public:
  enum class Mode { kLeaveAlone, kPassOn, kKeepOnly };

  /// Forks the keepers. Throws kIo when no pipe, pseudo-terminal or process can be created.
  OutputStreams(Mode mode, std::size_t tail_bytes);

  /// The descriptor for the child's stream 1 or 2; -1: leave it unchanged. Async-signal-safe.
  int child_end(int stream) const;
  /// Closes the child's ends. Call after the fork, in the parent.
  void start();
  /// Call when the command has ended. Returns when all its output has been passed on, however long its reader takes.
  /// Waits a moment for the output of children that outlive it; later output is passed on too, but not kept.
  void finish();
  /// Gives pseudo-terminals the current size of the real one. resized() returns true once after that.
  void resize();
  bool resized();
  /// The last bytes of a stream; empty if it is not kept.
  std::string tail(int stream) const;
  /// Bytes of both streams so far.
  std::uint64_t total() const;
  /// stdout and stderr are the same; the tail of stdout holds both.
  bool is_shared() const { return shared_; }

 private:
  void set_up(int stream);
  void pass_on(int stream, int to, bool terminal);

  std::size_t tail_bytes_;
  bool shared_ = false;
  std::array<std::unique_ptr<Tail>, 2> tails_;
  std::array<UniqueFd, 2> childs_;
  std::array<std::unique_ptr<Keeper>, 2> keepers_;
};

/// Whether two descriptors refer to the same open file description.
bool same_open_file(int a, int b);

}  // namespace unidle::observe
