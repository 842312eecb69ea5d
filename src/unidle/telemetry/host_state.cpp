#include "unidle/telemetry/host_state.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "unidle/base/characters.h"
#include "unidle/telemetry/detail/text.h"

namespace unidle::telemetry {

namespace fs = std::filesystem;

namespace {

std::optional<std::uint64_t> kib(const std::string& text, std::string_view key) {
  const auto value = detail::field(text, key);
  const auto number = value ? detail::number<std::uint64_t>(*value) : std::nullopt;
  return number ? std::optional(*number * 1024) : std::nullopt;
}

/// Returns the number after "key " in a file of "key value" lines.
std::optional<std::uint64_t> word_value(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string name, value; lines >> name >> value;) {
    if (name == key) {
      return detail::number<std::uint64_t>(value);
    }
  }
  return std::nullopt;
}

/// Keeps the group that was throttled most: a parent's quota also stops its children.
void take_throttling(CgroupUse& use, const std::string& text, std::string_view time_key, double time_unit_s) {
  const auto periods = word_value(text, "nr_periods");
  const auto throttled = word_value(text, "nr_throttled");
  const auto time = word_value(text, time_key);
  if (!periods || !throttled || (use.throttled_periods && *use.throttled_periods >= *throttled)) {
    return;
  }
  use.periods = periods;
  use.throttled_periods = throttled;
  use.throttled_s = time ? std::optional(static_cast<double>(*time) * time_unit_s) : std::nullopt;
}

/// The mount that contains `path`: its filesystem type, device number and source.
struct Mount {
  std::string point, type, number, source;
};

std::optional<Mount> mount_of(const fs::path& path, const fs::path& root) {
  std::optional<Mount> best;
  std::istringstream lines(try_read_file(root / "proc/self/mountinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);  // id parent major:minor root point options [tags] - type source options
    std::string id, parent, inner, word;
    Mount mount;
    words >> id >> parent >> mount.number >> inner >> mount.point;
    while (words >> word && word != "-") {
    }
    words >> mount.type >> mount.source;
    const std::string below = mount.point == "/" ? "/" : mount.point + "/";
    const bool holds = path.string() == mount.point || path.string().starts_with(below);
    if (holds && (!best || mount.point.size() >= best->point.size())) {
      best = mount;
    }
  }
  return best;
}

std::string kind_of(const std::string& type) {
  constexpr std::array<std::string_view, 10> kNetwork = {"nfs",    "nfs4", "cifs", "smb3",           "lustre",
                                                         "beegfs", "ceph", "gpfs", "fuse.glusterfs", "wekafs"};
  constexpr std::array<std::string_view, 2> kMemory = {"tmpfs", "ramfs"};
  if (std::find(kNetwork.begin(), kNetwork.end(), type) != kNetwork.end()) {
    return "network";
  }
  return std::find(kMemory.begin(), kMemory.end(), type) != kMemory.end() ? "memory" : "unknown";
}

/// "8:1" is a partition; its disk is the parent folder.
void find_disk(const std::string& number, Storage& storage, const fs::path& root) {
  std::error_code failure;
  fs::path folder = fs::canonical(root / "sys/dev/block" / number, failure);
  if (failure) {
    return;
  }
  if (fs::exists(folder / "partition", failure)) {
    folder = folder.parent_path();
  }
  storage.device = folder.filename().string();
  const auto rotational = detail::number<int>(try_read_file(folder / "queue/rotational").value_or(""));
  if (storage.device.starts_with("nvme")) {
    storage.kind = "nvme";
  } else if (rotational && (*rotational == 0 || !storage.device.starts_with("vd"))) {
    // A virtual disk always says "rotational".
    storage.kind = *rotational != 0 ? "hdd" : "ssd";
  }
}

}  // namespace

MemoryState read_memory_state(const fs::path& root) {
  MemoryState state;
  const std::string info = try_read_file(root / "proc/meminfo").value_or("");
  state.available_bytes = kib(info, "MemAvailable");
  const auto swap = kib(info, "SwapTotal");
  const auto swap_free = kib(info, "SwapFree");
  if (swap && swap_free && *swap >= *swap_free) {
    state.swap_used_bytes = *swap - *swap_free;
  }
  struct statvfs info_shm {};
  if (::statvfs((root / "dev/shm").c_str(), &info_shm) == 0) {
    state.shm_bytes = std::uint64_t{info_shm.f_blocks} * info_shm.f_frsize;
    state.shm_free_bytes = std::uint64_t{info_shm.f_bavail} * info_shm.f_frsize;
  }
  return state;
}

std::optional<Pressure> read_pressure(std::string_view resource, const fs::path& root) {
  // "some avg10=0.00 avg60=0.00 avg300=0.00 total=0" in microseconds
  std::istringstream text(try_read_file(root / "proc/pressure" / resource).value_or(""));
  std::string line;
  std::getline(text, line);
  const auto total = line.find("total=");
  const auto recent = line.find("avg10=");
  if (!line.starts_with("some") || total == std::string::npos) {
    return std::nullopt;
  }
  const auto microseconds = detail::number<double>(std::string_view(line).substr(total + 6));
  if (!microseconds) {
    return std::nullopt;
  }
  Pressure pressure{*microseconds * 1e-6, std::nullopt};
  if (recent != std::string::npos) {
    const auto percent = detail::number<double>(std::string_view(line).substr(recent + 6));
    pressure.some_10s = percent ? std::optional(*percent / 100) : std::nullopt;
  }
  return pressure;
}

CgroupUse read_cgroup_use(const fs::path& root) {
  CgroupUse use;
  detail::each_cgroup(root, [&](const detail::CgroupFolder& group) {
    if (group.version == 2) {
      take_throttling(use, try_read_file(group.path / "cpu.stat").value_or(""), "throttled_usec", 1e-6);
      if (!use.memory_bytes) {  // the innermost group comes first
        use.memory_bytes = detail::number<std::uint64_t>(try_read_file(group.path / "memory.current").value_or(""));
        use.oom_kills = word_value(try_read_file(group.path / "memory.events").value_or(""), "oom_kill");
      }
    } else if (group.controller == "cpu") {
      take_throttling(use, try_read_file(group.path / "cpu.stat").value_or(""), "throttled_time", 1e-9);
    } else if (group.controller == "memory" && !use.memory_bytes) {
      use.memory_bytes =
          detail::number<std::uint64_t>(try_read_file(group.path / "memory.usage_in_bytes").value_or(""));
      use.oom_kills = word_value(try_read_file(group.path / "memory.oom_control").value_or(""), "oom_kill");
    }
  });
  return use;
}

Storage read_storage(const fs::path& path, const fs::path& root) {
  Storage storage;
  std::error_code ignored;
  const fs::path whole = fs::weakly_canonical(path, ignored);
  storage.path = whole.empty() ? path.string() : whole.string();
  storage.kind = "unknown";
  if (const auto mount = mount_of(storage.path, root)) {
    storage.filesystem = mount->type;
    storage.kind = kind_of(mount->type);
    if (storage.kind == "unknown") {
      find_disk(mount->number, storage, root);
    }
  }
  struct statvfs info {};
  if (::statvfs(storage.path.c_str(), &info) == 0) {
    storage.total_bytes = std::uint64_t{info.f_blocks} * info.f_frsize;
    storage.free_bytes = std::uint64_t{info.f_bavail} * info.f_frsize;
  }
  return storage;
}

std::vector<int> parse_cpu_list(std::string_view list) {
  std::vector<int> cpus;
  list = trimmed(list);
  while (!list.empty()) {
    const auto comma = list.find(',');
    const std::string_view part = list.substr(0, comma);
    const auto dash = part.find('-');
    const auto first = detail::number<int>(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : detail::number<int>(part.substr(dash + 1));
    constexpr int kMost = 1 << 16;
    if (!first || !last || *last < *first || *last >= kMost) {
      return {};
    }
    for (int cpu = *first; cpu <= *last; ++cpu) {
      cpus.push_back(cpu);
    }
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return cpus;
}

std::string affinity_list(const fs::path& root) {
  return detail::field(try_read_file(root / "proc/self/status").value_or(""), "Cpus_allowed_list").value_or("");
}

}  // namespace unidle::telemetry
