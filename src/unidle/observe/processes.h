// Who a process number means: the kernel gives the number of a process that has ended to another one.
#pragma once

#include <cstdint>
#include <map>
#include <set>

namespace unidle::observe {

/// Gives each process that reports the number by which the record knows it: its pid, and for a later process of the
/// same pid that and 2^32 for each before it. Keeps a few bytes for each pid that has reported. Not thread-safe.
class Processes {
 public:
  /// `start`: with the pid, who it is; 0: not known, then the newest of that pid is meant.
  std::int64_t number(std::int64_t pid, std::uint64_t start);
  /// Numbers that the record holds already, and one that is known to be of this process.
  void taken(const std::set<std::int64_t>& numbers);
  void known(std::int64_t number, std::uint64_t start);

  std::set<std::int64_t> pids() const;

  static constexpr std::int64_t kEach = std::int64_t{1} << 32;
  static std::int64_t pid_of(std::int64_t number) { return number % kEach; }

 private:
  struct Newest {
    std::uint64_t start = 0;  // 0: not known yet
    std::int64_t number = 0;
  };
  std::map<std::int64_t, Newest> newest_;
};

}  // namespace unidle::observe
