// A process that passes a stream on, so that the command's output depends on nothing that may happen to us.
#pragma once

#include <sys/types.h>

#include "unidle/base/handle.h"
#include "unidle/observe/tail.h"

namespace unidle::observe {

/// Copies what comes from a pipe or pseudo-terminal to the real stream and keeps its end, in a small process of its own
/// session with all signals blocked. It lives until the last writer has closed, however long that is and whether or not
/// we still live; until the real stream's reader has gone: then it closes its side, and writers see EPIPE, or EIO on a
/// terminal, as they would without us.
class Keeper {
 public:
  struct Wiring {
    int from = -1;          // the reading side; the process takes it over, the caller closes its own
    int to = -1;            // the real stream; -1: nowhere
    bool terminal = false;  // `from` is the controlling side of a pseudo-terminal
  };

  /// Forks; the process runs async-signal-safe code only. `tail` must be shared. Throws kIo when it cannot.
  Keeper(const Wiring& wiring, SharedTail& tail);
  /// Lets the process be; it is reaped when it has ended.
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// Asks it to give the pseudo-terminal the size of the real one. resized() tells once when that was done.
  void resize();
  bool resized();
  /// The command has ended: asks it to say when all that was written until then has been passed on.
  void drain();
  /// Readable when there is news; -1 when the process has ended.
  int news() const { return control_.get(); }
  /// Reads what it said. Does not wait.
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
