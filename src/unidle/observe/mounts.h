// What is mounted, and over which folders a layer can be put so that what is written there is thrown away.
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

  /// It keeps files; otherwise it shows the kernel's own (proc, sysfs, devices, cgroups).
  bool is_storage() const;
};

/// Of the text of /proc/self/mountinfo, in its order: a later one hides an earlier one at the same point.
std::vector<Mount> parse_mounts(std::string_view mountinfo);

/// `path` is `folder` or lies in it. Both absolute and normal.
bool is_within(const std::filesystem::path& path, const std::filesystem::path& folder);

/// One thing to put over a folder, sorted so that what lies above comes first.
struct Cover {
  std::filesystem::path folder;
  bool layer = false;  // an overlay; otherwise the mount that was there, which a layer above it hides
};

/// Over all that is stored on this machine: for one who may mount anything.
std::vector<Cover> cover_everything(const std::vector<Mount>& mounts);

/// Over the folders of this user above each of `places`, and over those for temporary files: the kernel lets an
/// unprivileged user change a copy of nothing that belongs to another user or group, and put no layer over a folder
/// with a mount in it, in whose place those below it come then.
std::vector<Cover> cover_own(const std::vector<Mount>& mounts, const std::vector<std::filesystem::path>& places);

/// Sockets and pipes in `folder` and its folders: through a layer they lead nowhere. The first hundred.
std::vector<std::filesystem::path> meeting_points(const std::filesystem::path& folder);

}  // namespace unidle::observe
