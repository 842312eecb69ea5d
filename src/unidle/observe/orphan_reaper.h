// Ends the processes that a trial leaves running.
#pragma once

#include <cstdint>
#include <set>

namespace unidle::observe {

/// From its construction on, orphaned descendants of this process become its children, even in sessions of their own,
/// which signals to a group do not reach. One instance at a time; not thread-safe.
class OrphanReaper {
 public:
  OrphanReaper();
  /// Restores the previous subreaper state.
  ~OrphanReaper();
  OrphanReaper(const OrphanReaper&) = delete;
  OrphanReaper& operator=(const OrphanReaper&) = delete;

  /// Kills and reaps all descendants of this process that did not exist at construction. The command itself must
  /// already be reaped. Returns their number; waits for them, at most some seconds.
  int end() const;

 private:
  std::set<std::int64_t> before_;
  bool adopts_ = false;  // subreaper before construction
};

}  // namespace unidle::observe
