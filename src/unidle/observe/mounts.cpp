#include "unidle/observe/mounts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <sstream>

namespace unidle::observe {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostLayers = 200;
constexpr std::size_t kMostMeetingPoints = 1000;  // killed Python processes leave many dead sockets in /tmp
constexpr int kMostLookedAt = 20000;

/// The kernel writes blanks, tabs, newlines and backslashes as three octal digits.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = std::string_view(text).substr(std::min(i + 1, text.size()), 3);
    if (text[i] == '\\' && digits.size() == 3 && digits.find_first_not_of("01234567") == std::string_view::npos) {
      plain += static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + (digits[2] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

bool has_option(const std::string& options, const std::string& name) {
  return ("," + options + ",").find("," + name + ",") != std::string::npos;
}

bool is_point(const std::vector<Mount>& mounts, const fs::path& folder) {
  return std::any_of(mounts.begin(), mounts.end(), [&](const Mount& mount) { return mount.point == folder; });
}

bool has_mount_below(const std::vector<Mount>& mounts, const fs::path& folder) {
  return std::any_of(mounts.begin(), mounts.end(),
                     [&](const Mount& mount) { return mount.point != folder && is_within(mount.point, folder); });
}

/// The mount that `path` is on: the innermost one, and the topmost of several at the same point.
const Mount* mount_of(const std::vector<Mount>& mounts, const fs::path& path) {
  const Mount* found = nullptr;
  for (const Mount& mount : mounts) {
    if (is_within(path, mount.point) &&
        (found == nullptr || mount.point.native().size() >= found->point.native().size())) {
      found = &mount;
    }
  }
  return found;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    std::error_code unknown;
    if (!entry->is_symlink(unknown) && entry->is_directory(unknown)) {
      folders.push_back(entry->path());
    }
  }
  return folders;
}

bool is_own(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         status.st_gid == ::getegid();
}

/// The highest folder above `place` such that it and all folders in between belong to this user; empty if there is
/// none.
fs::path own_folder(const fs::path& place) {
  std::error_code failure;
  fs::path at = fs::weakly_canonical(place, failure);
  fs::path own;
  for (; !failure && at.has_relative_path(); at = at.parent_path()) {
    if (is_own(at)) {
      own = at;
    } else if (!own.empty()) {
      break;
    }
  }
  return own;
}

void add_without_mounts(const std::vector<Mount>& mounts, const fs::path& folder, std::set<fs::path>& layers) {
  const Mount* mount = mount_of(mounts, folder);
  if (layers.size() >= kMostLayers || mount == nullptr || !mount->is_storage() || !mount->writable) {
    return;
  }
  if (!has_mount_below(mounts, folder)) {
    layers.insert(folder);
    return;
  }
  for (const fs::path& below : folders_in(folder)) {
    if (is_own(below)) {
      add_without_mounts(mounts, below, layers);
    }
  }
}

void find_meeting_points(const fs::path& folder, int depth, int& looked_at, std::vector<fs::path>& found) {
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    std::error_code unknown;
    const fs::file_type type = entry->symlink_status(unknown).type();
    if (++looked_at > kMostLookedAt || found.size() >= kMostMeetingPoints) {
      return;
    }
    if (type == fs::file_type::socket || type == fs::file_type::fifo) {
      found.push_back(entry->path());
    } else if (type == fs::file_type::directory && depth > 0) {
      find_meeting_points(entry->path(), depth - 1, looked_at, found);
    }
  }
}

}  // namespace

bool Mount::is_storage() const {
  static const std::set<std::string_view> kOfTheKernel = {
      "proc",      "sysfs",       "devtmpfs",   "devpts",   "cgroup",     "cgroup2",  "mqueue",
      "debugfs",   "tracefs",     "securityfs", "pstore",   "bpf",        "configfs", "fusectl",
      "hugetlbfs", "binfmt_misc", "autofs",     "efivarfs", "rpc_pipefs", "nsfs",     "selinuxfs"};
  return !kOfTheKernel.contains(type);
}

std::vector<Mount> parse_mounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, point, options, word, type, source, of_storage;
    words >> id >> parent >> device >> root >> point >> options;
    while (words >> word && word != "-") {
    }
    words >> type >> source >> of_storage;
    if (!type.empty()) {
      mounts.push_back({unescaped(point), type, has_option(options, "rw") && !has_option(of_storage, "ro")});
    }
  }
  return mounts;
}

bool is_within(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

std::vector<Cover> cover_everything(const std::vector<Mount>& mounts) {
  std::set<fs::path> layers;
  for (const Mount& mount : mounts) {
    if (!mount.is_storage() || !mount.writable || mount_of(mounts, mount.point)->point != mount.point) {
      continue;
    }
    if (mount.point != "/") {
      // An overlay is most likely another container's, and one more layer may exceed the kernel's limit.
      std::error_code unknown;  // even root cannot stat FUSE mounts of other users
      if (mount.type != "overlay" && fs::is_directory(mount.point, unknown)) {
        layers.insert(mount.point);
      }
      continue;
    }
    for (const fs::path& folder : folders_in("/")) {
      if (!is_point(mounts, folder)) {
        layers.insert(folder);
      }
    }
  }
  std::vector<Cover> covers;
  std::set<fs::path> seen = layers;
  for (const fs::path& layer : layers) {
    covers.push_back({layer, true});
  }
  for (const Mount& mount : mounts) {
    const bool hidden = std::any_of(layers.begin(), layers.end(), [&](const fs::path& layer) {
      return mount.point != layer && is_within(mount.point, layer);
    });
    if (hidden && seen.insert(mount.point).second) {
      covers.push_back({mount.point, false});
    }
  }
  std::sort(covers.begin(), covers.end(), [](const Cover& a, const Cover& b) { return a.folder < b.folder; });
  return covers;
}

std::vector<Cover> cover_own(const std::vector<Mount>& mounts, const std::vector<fs::path>& places) {
  std::set<fs::path> layers;
  for (const fs::path& place : places) {
    if (const fs::path folder = own_folder(place); !folder.empty()) {
      add_without_mounts(mounts, folder, layers);
    }
  }
  for (const char* temporary : {"/tmp", "/var/tmp", "/dev/shm"}) {
    struct stat status {};
    if (::lstat(temporary, &status) == 0 && S_ISDIR(status.st_mode) && ::access(temporary, W_OK) == 0) {
      add_without_mounts(mounts, temporary, layers);
    }
  }
  std::vector<Cover> covers;
  for (const fs::path& layer : layers) {  // sorted: a folder comes before those inside it
    const bool within =
        std::any_of(covers.begin(), covers.end(), [&](const Cover& cover) { return is_within(layer, cover.folder); });
    if (!within) {
      covers.push_back({layer, true});
    }
  }
  return covers;
}

std::vector<fs::path> meeting_points(const fs::path& folder) {
  std::vector<fs::path> found;
  int looked_at = 0;
  find_meeting_points(folder, 1, looked_at, found);
  return found;
}

}  // namespace unidle::observe
