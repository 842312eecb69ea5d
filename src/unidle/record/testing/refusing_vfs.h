#pragma once

namespace unidle::record::testing {

/// While it lives, databases that are opened go through it: it refuses the n-th write, truncation or sync of them,
/// counted from 1, and all later ones, as a disk that is full does. One at a time; not thread-safe.
class RefusingVfs {
 public:
  explicit RefusingVfs(int n);
  ~RefusingVfs();
  RefusingVfs(const RefusingVfs&) = delete;
  RefusingVfs& operator=(const RefusingVfs&) = delete;

  /// False when the n-th one never came.
  bool refused() const;
};

}  // namespace unidle::record::testing
