// A process that passes on the command's output, so that the output does not depend on unidle being alive.
#pragma once

#include <sys/types.h>

#include "unidle/base/handle.h"
#include "unidle/observe/tail.h"

namespace unidle::observe {

/// Copies a pipe or pseudo-terminal to the real stream and keeps the last bytes, in a small process with its own
/// session and all signals blocked. It lives until the last writer closes, even if unidle has ended. When the real
/// stream's reader goes away, it closes its side; writers then see EPIPE, or EIO on a terminal, as they would without
/// unidle.
class Keeper {
 public:
  struct Wiring {
    int from = -1;          // the read end; the process owns it, the caller closes its copy
    int to = -1;            // the real stream; -1: discard
    bool terminal = false;  // `from` is the controlling side of a pseudo-terminal
  };

  /// Forks; the process runs async-signal-safe code only. `tail` must be shared memory. Throws kIo when it cannot fork.
  Keeper(const Wiring& wiring, SharedTail& tail);
  /// Leaves the process running; it is reaped when it has ended.
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// Asks the process to give the pseudo-terminal the size of the real one. resized() returns true once after that.
  void resize();
  bool resized();
  /// Asks the process to report when everything written so far has been passed on. Call when the command has ended.
  void drain();
  /// Becomes readable when the process has sent a message; -1 when it has ended.
  int news() const { return control_.get(); }
  /// Reads its messages. Does not wait.
  void listen();
  bool drained() const { return drained_ || ended(); }
  bool ended() const { return !control_; }

 private:
  void ask(char what);

  UniqueFd control_;
  pid_t pid_ = -1;
  bool resized_ = false;
  bool drained_ = false;
};

}  // namespace unidle::observe
