#include "unidle/telemetry/process_tree.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "unidle/telemetry/detail/text.h"

namespace unidle::telemetry {

namespace fs = std::filesystem;

namespace {

std::vector<std::int64_t> numbers(std::string_view text) {
  std::vector<std::int64_t> found;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at != end) {
    std::int64_t value = 0;
    const auto [next, failure] = std::from_chars(at, end, value);
    if (failure == std::errc()) {
      found.push_back(value);
    }
    at = failure == std::errc() ? next : at + 1;
  }
  return found;
}

/// Returns the number after `key` in a file of "key: value" lines.
std::optional<std::uint64_t> field(const std::optional<std::string>& text, std::string_view key) {
  const auto at = text ? text->find(key) : std::string::npos;
  if (at == std::string::npos) {
    return std::nullopt;
  }
  const auto begin = text->find_first_not_of(" \t", at + key.size());
  std::uint64_t value = 0;
  if (begin == std::string::npos ||
      std::from_chars(text->data() + begin, text->data() + text->size(), value).ec != std::errc()) {
    return std::nullopt;
  }
  return value;
}

std::vector<std::int64_t> all_pids(const fs::path& root) {
  std::vector<std::int64_t> pids;
  std::error_code failure;
  for (fs::directory_iterator entry(root / "proc", failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    std::int64_t pid = 0;
    const auto [last, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad == std::errc() && last == name.data() + name.size()) {
      pids.push_back(pid);
    }
  }
  return pids;
}

/// Reads the kernel's lists of children; nothing when it keeps none.
std::optional<std::vector<std::int64_t>> children(std::int64_t pid, const fs::path& root) {
  std::vector<std::int64_t> found;
  bool any = false;
  std::error_code failure;
  const fs::path tasks = detail::process_folder(root, pid) / "task";
  for (fs::directory_iterator entry(tasks, failure), end; !failure && entry != end; entry.increment(failure)) {
    if (const auto text = try_read_file(entry->path() / "children")) {
      any = true;
      const std::vector<std::int64_t> more = numbers(*text);
      found.insert(found.end(), more.begin(), more.end());
    }
  }
  return any ? std::optional(found) : std::nullopt;
}

void add_descendants(std::vector<std::int64_t>& tree, const std::map<std::int64_t, std::int64_t>& parents) {
  for (std::size_t i = 0; i < tree.size(); ++i) {
    for (const auto& [pid, parent] : parents) {
      if (parent == tree[i] && std::find(tree.begin(), tree.end(), pid) == tree.end()) {
        tree.push_back(pid);
      }
    }
  }
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open || close + 3 > text.size()) {
    return std::nullopt;
  }
  const std::vector<std::int64_t> pid = numbers(text.substr(0, open));
  const std::vector<std::int64_t> rest = numbers(text.substr(close + 3));  // from field 4, ppid
  if (pid.empty() || rest.size() < 21) {
    return std::nullopt;
  }
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  ProcessStat stat;
  stat.pid = pid[0];
  stat.name = std::string(text.substr(open + 1, close - open - 1));
  stat.state = text[close + 2];
  stat.parent = rest[0];
  stat.cpu_s = (static_cast<double>(rest[10]) + static_cast<double>(rest[11])) / ticks;
  stat.children_cpu_s = (static_cast<double>(rest[12]) + static_cast<double>(rest[13])) / ticks;
  stat.threads = static_cast<int>(rest[16]);
  stat.start_ticks = static_cast<std::uint64_t>(rest[18]);
  stat.rss_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(rest[20], 0)) *
                   static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  stat.major_faults = static_cast<std::uint64_t>(rest[8]);
  if (rest.size() > 38) {
    stat.io_delay_s = static_cast<double>(rest[38]) / ticks;
  }
  return stat;
}

std::optional<ProcessStat> read_process_stat(std::int64_t pid, const fs::path& root) {
  const auto text = try_read_file(detail::process_folder(root, pid) / "stat");
  return text ? parse_process_stat(*text) : std::nullopt;
}

std::vector<std::int64_t> process_tree(std::int64_t root_pid, const fs::path& root) {
  std::vector<std::int64_t> tree = {root_pid};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const auto found = children(tree[i], root);
    if (i == 0 && !found) {
      std::map<std::int64_t, std::int64_t> parents;
      for (const std::int64_t pid : all_pids(root)) {
        if (const auto stat = read_process_stat(pid, root)) {
          parents[pid] = stat->parent;
        }
      }
      add_descendants(tree, parents);
      break;
    }
    for (const std::int64_t pid : found.value_or(std::vector<std::int64_t>())) {
      if (std::find(tree.begin(), tree.end(), pid) == tree.end()) {
        tree.push_back(pid);
      }
    }
  }
  return tree;
}

ProcessTreeReader::ProcessTreeReader(std::int64_t root_pid, fs::path root)
    : root_pid_(root_pid), root_(std::move(root)), pids_{root_pid} {}

TreeUsage ProcessTreeReader::read(bool rediscover, bool proportional) {
  if (rediscover) {
    pids_ = process_tree(root_pid_, root_);
  }
  TreeUsage usage;
  double cpu_s = 0;
  std::optional<std::uint64_t> read_bytes;
  std::uint64_t pss = 0;
  bool pss_known = proportional;
  for (const std::int64_t pid : pids_) {
    const auto stat = read_process_stat(pid, root_);
    if (!stat) {
      continue;
    }
    // A child's usage moves to its parent when it is waited for, so the sum over the tree stays complete.
    cpu_s += stat->cpu_s + stat->children_cpu_s;
    usage.rss_bytes += stat->rss_bytes;
    usage.processes += 1;
    usage.threads += stat->threads;
    usage.in_disk_wait += stat->state == 'D' ? 1 : 0;
    usage.io_delay_s += stat->io_delay_s;
    usage.major_faults += stat->major_faults;
    if (const auto read = field(try_read_file(detail::process_folder(root_, pid) / "io"), "\nread_bytes:")) {
      // As for CPU time, the kernel adds a child's reads to its parent.
      read_bytes = read_bytes.value_or(0) + *read;
    }
    if (pss_known) {
      const auto kib = field(try_read_file(detail::process_folder(root_, pid) / "smaps_rollup"), "\nPss:");
      pss_known = kib.has_value() || stat->rss_bytes == 0;
      pss += kib.value_or(0) * 1024;
    }
  }
  cpu_s_ = std::max(cpu_s_, cpu_s);
  usage.cpu_s = cpu_s_;
  usage.pss_bytes = pss_known && usage.processes > 0 ? std::optional(pss) : std::nullopt;
  read_bytes_ = std::max(read_bytes_, read_bytes);
  usage.read_bytes = read_bytes_;
  return usage;
}

}  // namespace unidle::telemetry
