// What a trial leaves running when it is over.
#pragma once

#include <cstdint>
#include <set>

namespace unidle::observe {

/// From its construction on, processes that are left behind by what this process starts become its children, also
/// those with a session of their own, which signals to a group do not reach. One at a time; not thread-safe.
class Leftovers {
 public:
  Leftovers();
  /// Takes back that this process adopts others.
  ~Leftovers();
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

  /// Kills and reaps all descendants of this process that were not there at construction. The command itself must be
  /// reaped. Returns how many there were; waits for them, at most some seconds.
  int end() const;

 private:
  std::set<std::int64_t> before_;
  bool adopts_ = false;  // this process did so already
};

}  // namespace unidle::observe
