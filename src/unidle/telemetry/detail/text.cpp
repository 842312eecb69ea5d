#include "unidle/telemetry/detail/text.h"

#include <sstream>

#include "unidle/base/files.h"

namespace unidle::telemetry::detail {

namespace fs = std::filesystem;

namespace {

void up_the_tree(const fs::path& mount, const std::string& path, const CgroupFolder& kind,
                 const std::function<void(const CgroupFolder&)>& visit) {
  fs::path group = mount / fs::path(path).relative_path();
  while (group != mount && group.has_relative_path() && group.string().size() > mount.string().size()) {
    visit({kind.version, kind.controller, group});
    group = group.parent_path();
  }
  visit({kind.version, kind.controller, mount});
}

bool names_controller(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const auto comma = controllers.find(',');
    if (controllers.substr(0, comma) == wanted) {
      return true;
    }
    controllers = comma == std::string_view::npos ? std::string_view() : controllers.substr(comma + 1);
  }
  return false;
}

/// v1 mounts a controller under its own name or together with others ("cpu,cpuacct").
fs::path v1_mount(const fs::path& cgroups, const std::string& controllers, const std::string& controller) {
  std::error_code ignored;
  const fs::path together = cgroups / controllers;
  return fs::is_directory(together, ignored) ? together : cgroups / controller;
}

}  // namespace

fs::path process_folder(const fs::path& root, std::int64_t pid) { return root / "proc" / std::to_string(pid); }

std::optional<std::string> field(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon != std::string::npos && trimmed(std::string_view(line).substr(0, colon)) == key) {
      return std::string(trimmed(std::string_view(line).substr(colon + 1)));
    }
  }
  return std::nullopt;
}

void each_cgroup(const fs::path& root, const std::function<void(const CgroupFolder&)>& visit) {
  const fs::path cgroups = root / "sys/fs/cgroup";
  std::error_code ignored;
  std::istringstream lines(try_read_file(root / "proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,cpuacct:/path", or "0::/path" for v2
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      // In hybrid mode, v2 is mounted one level below the v1 controllers.
      const fs::path hybrid = cgroups / "unified";
      up_the_tree(fs::is_directory(hybrid, ignored) ? hybrid : cgroups, path, {2, "", {}}, visit);
    }
    for (const char* controller : {"cpu", "memory"}) {
      if (names_controller(controllers, controller)) {
        up_the_tree(v1_mount(cgroups, controllers, controller), path, {1, controller, {}}, visit);
      }
    }
  }
}

}  // namespace unidle::telemetry::detail
