#include "unidle/observe/processes.h"

#include <algorithm>

namespace unidle::observe {

std::int64_t Processes::number(std::int64_t pid, std::uint64_t start) {
  const auto [entry, added] = newest_.try_emplace(pid, Newest{start, pid});
  Newest& newest = entry->second;
  if (start != 0 && newest.start == 0) {
    newest.start = start;
  } else if (start != 0 && start != newest.start) {
    // The files of an earlier process may be found after those of its successor.
    if (start < newest.start) {
      return newest.number >= kEach ? newest.number - kEach : newest.number;
    }
    newest = {start, newest.number + kEach};
  }
  return newest.number;
}

void Processes::taken(const std::set<std::int64_t>& numbers) {
  for (const std::int64_t number : numbers) {
    // The next process may be another one; only a position in the record can tell.
    newest_[pid_of(number)] = {1, number};
  }
}

std::set<std::int64_t> Processes::pids() const {
  std::set<std::int64_t> all;
  for (const auto& [pid, newest] : newest_) {
    all.insert(pid);
  }
  return all;
}

void Processes::known(std::int64_t number, std::uint64_t start) { newest_[pid_of(number)] = {start, number}; }

}  // namespace unidle::observe
