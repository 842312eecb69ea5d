// Failures that a program's output shows, whatever its exit code says.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace unidle::diagnose::detail {

/// Whose fault a failure is, by its message; when one process of several fails, others fail with it.
enum class Blame {
  kOwn,
  kPeer,      // of a process that this one talked to
  kLauncher,  // of a process that this one had started
};
Blame blame_of(std::string_view message);

struct OutputFailure {
  std::string message;               // "TypeError: Object of type float32 is not JSON serializable"
  std::optional<std::string> where;  // "train.py:78", the innermost frame of the user's own code
  bool went_on = false;              // progress lines follow it
};

/// A process of several that had no time for a word.
struct KilledRank {
  int rank = 0;
  int signal = 0;
};
/// The one that torchrun names as the first failure, at the end of its own error, where a signal ended it: others only
/// say then that they lost it. Not of SIGTERM, which torchrun itself sends.
std::optional<KilledRank> killed_rank(std::string_view tail);

/// The last Python traceback in `tail`, or an "unidle: ..." error line at its end.
std::optional<OutputFailure> find_failure(std::string_view tail);

}  // namespace unidle::diagnose::detail
