// Mounts, and the folders that an overlay can cover so that writes to them are thrown away.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::observe {

struct Mount {
  std::filesystem::path point;
  std::string type;
  bool writable = false;

  /// Whether it stores files; otherwise it shows kernel state (proc, sysfs, devices, cgroups).
  bool is_storage() const;
};

/// Parses the text of /proc/self/mountinfo, in its order: a later mount hides an earlier one at the same point.
std::vector<Mount> parse_mounts(std::string_view mountinfo);

/// Whether `path` is `folder` or inside it. Both must be absolute and normalised.
bool is_within(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Something to mount over a folder. Covers are sorted so that outer folders come first.
struct Cover {
  std::filesystem::path folder;
  bool layer = false;  // an overlay; otherwise the original mount, which an overlay above it hides
};

/// Covers all storage of this machine, for a process that may mount anything.
std::vector<Cover> cover_everything(const std::vector<Mount>& mounts);

/// Covers this user's folders above each of `places`, and the folders for temporary files. The kernel does not let an
/// unprivileged user change a copy of a file that belongs to another user or group, nor put an overlay on a folder that
/// contains a mount; the folders inside are then covered instead.
std::vector<Cover> cover_own(const std::vector<Mount>& mounts, const std::vector<std::filesystem::path>& places);

/// Sockets and FIFOs in `folder` and in its folders, at most a thousand: they do not work through an overlay.
std::vector<std::filesystem::path> meeting_points(const std::filesystem::path& folder);

}  // namespace unidle::observe
