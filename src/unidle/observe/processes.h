// Which process a pid means: the kernel reuses the pids of ended processes.
#pragma once

#include <cstdint>
#include <map>
#include <set>

namespace unidle::observe {

/// Gives each reporting process its number in the record: its pid, and for later processes of the same pid that plus
/// 2^32 for each predecessor. Keeps a few bytes for each pid. Not thread-safe.
class Processes {
 public:
  /// `start` identifies the process together with the pid; 0: unknown, the newest process of that pid is meant.
  std::int64_t number(std::int64_t pid, std::uint64_t start);
  /// Sets the numbers that the record already holds, and one number that belongs to a known process.
  void taken(const std::set<std::int64_t>& numbers);
  void known(std::int64_t number, std::uint64_t start);

  std::set<std::int64_t> pids() const;

  static constexpr std::int64_t kEach = std::int64_t{1} << 32;
  static std::int64_t pid_of(std::int64_t number) { return number % kEach; }

 private:
  struct Newest {
    std::uint64_t start = 0;  // 0: unknown
    std::int64_t number = 0;
  };
  std::map<std::int64_t, Newest> newest_;
};

}  // namespace unidle::observe
