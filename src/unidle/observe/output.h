// The command's stdout and stderr: what it is given for them, and how their end is kept.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "unidle/base/handle.h"
#include "unidle/observe/keeper.h"
#include "unidle/observe/tail.h"

namespace unidle::observe {

/// A stream that is a regular file is the command's own, read back from that file. Of a pipe, a terminal, a socket or
/// /dev/null the command gets a pipe or pseudo-terminal in its place, and a Keeper passes it on. Any other device is
/// the command's own, and nothing is kept of it.
class OutputStreams {
 public:
  enum class Mode { kLeaveAlone, kPassOn, kKeepOnly };

  /// Forks the keepers. Throws kIo when neither pipe nor pseudo-terminal nor process can be had.
  OutputStreams(Mode mode, std::size_t tail_bytes);

  /// The descriptor that the child must have as 1 or 2; -1 to leave it alone. Async-signal-safe.
  int child_end(int stream) const;
  /// After the fork, in the parent: closes the child's ends.
  void start();
  /// The command has ended: returns when all that it wrote has been passed on, which takes as long as its reader does.
  /// Children that outlive it get a moment for last words; theirs are passed on in any case, and kept within it.
  void finish();
  /// Gives pseudo-terminals the size that the real one has now. resized() tells once when that was done.
  void resize();
  bool resized();
  /// The end of a stream; empty where nothing is kept.
  std::string tail(int stream) const;
  /// Bytes of both streams so far.
  std::uint64_t total() const;
  /// stdout and stderr are one: what comes on it is the tail of stdout.
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

/// Whether two descriptors are one and the same open file.
bool same_open_file(int a, int b);

}  // namespace unidle::observe
