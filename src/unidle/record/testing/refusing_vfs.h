#pragma once

namespace unidle::record::testing {

/// While it lives, databases are opened through it. It refuses their n-th write, truncation or sync, counted from 1,
/// and all later ones, like a full disk. One instance at a time; not thread-safe.
class RefusingVfs {
 public:
  explicit RefusingVfs(int n);
  ~RefusingVfs();
  RefusingVfs(const RefusingVfs&) = delete;
  RefusingVfs& operator=(const RefusingVfs&) = delete;

  /// False if there were fewer than n operations.
  bool refused() const;
};

}  // namespace unidle::record::testing
