// A mount namespace in which all storage is read-only, except for overlays on the folders that a command writes to.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <set>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/observe/mounts.h"
#include "unidle/observe/sandbox.h"

#ifndef MOUNT_ATTR_RDONLY
#error "the kernel's headers are older than 5.12"
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

namespace unidle::observe {

namespace fs = std::filesystem;

namespace {

struct Attributes {  // struct mount_attr of <linux/mount.h>; <sys/mount.h> defines the same name
  std::uint64_t set = 0;
  std::uint64_t clear = 0;
  std::uint64_t propagation = 0;
  std::uint64_t user_namespace = 0;
};

/// Returns 0 or errno. Async-signal-safe.
int change_attributes(const char* path, unsigned flags, const Attributes& attributes) {
  const int folder = AT_FDCWD;
  return ::syscall(SYS_mount_setattr, folder, path, flags, &attributes, sizeof attributes) == 0 ? 0 : errno;
}

int write_text(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) {
    return errno;
  }
  const int failure = ::write(fd, text.data(), text.size()) < 0 ? errno : 0;
  ::close(fd);
  return failure;
}

constexpr int kNoDescriptor = -1;

/// Whether `fd` is a file in a layer: on an overlay, but not on `device`, where the file at its path was before. The
/// machine's own root may be an overlay as well.
bool is_in_overlay(int fd, dev_t device) {
  struct statfs system {};
  struct stat status {};
  constexpr unsigned long kOverlay = 0x794c7630;
  return fd >= 0 && ::fstatfs(fd, &system) == 0 && static_cast<unsigned long>(system.f_type) == kOverlay &&
         ::fstat(fd, &status) == 0 && status.st_dev != device;
}

/// Returns 0 or errno. Async-signal-safe.
int copy_bytes(int from, int to) {
  std::array<char, 4096> bytes;
  for (ssize_t size = 0; (size = ::read(from, bytes.data(), bytes.size())) != 0;) {
    if (size < 0) {
      return errno;
    }
    for (ssize_t done = 0; done < size;) {
      const ssize_t written = ::write(to, bytes.data() + done, static_cast<std::size_t>(size - done));
      if (written < 0) {
        return errno;
      }
      done += written;
    }
  }
  return 0;
}

/// Builds a short text without allocating.
class Text {
 public:
  Text& operator<<(const char* text) {
    const std::size_t length = std::min(std::strlen(text), bytes_.size() - 1 - size_);
    std::memcpy(bytes_.data() + size_, text, length);
    size_ += length;
    bytes_[size_] = '\0';
    return *this;
  }
  Text& operator<<(int number) {
    std::array<char, 16> digits{};
    std::to_chars(digits.data(), digits.data() + digits.size() - 1, number);
    return *this << digits.data();
  }
  const char* c_str() const { return bytes_.data(); }

 private:
  std::array<char, 256> bytes_{};
  std::size_t size_ = 0;
};

/// Whether the process may mount without a user namespace.
bool may_mount() {
  const std::string status = try_read_file("/proc/self/status").value_or("");
  const std::size_t at = status.find("CapEff:");
  if (at == std::string::npos) {
    return false;
  }
  constexpr int kSysAdmin = 21;
  return ((std::strtoull(status.c_str() + at + std::strlen("CapEff:"), nullptr, 16) >> kSysAdmin) & 1U) != 0;
}

/// Whether this is the machine's first user namespace, in which all user ids map to themselves.
bool is_first_namespace() {
  const std::string map = try_read_file("/proc/self/uid_map").value_or("");
  return map.find("4294967295") != std::string::npos;
}

bool holds_layers(const fs::path& folder) {
  struct statfs status {};
  // File systems that the kernel does not accept as upper layer: overlayfs, NFS, SMB, FUSE, Lustre, GPFS, BeeGFS, 9p,
  // Ceph.
  static const std::set<unsigned long> kNone = {0x794c7630UL, 0x6969UL,     0xff534d42UL, 0xfe534d42UL, 0x65735546UL,
                                                0x0bd00bd0UL, 0x47504653UL, 0x19830326UL, 0x01021997UL, 0x00c36400UL};
  return ::statfs(folder.c_str(), &status) == 0 && !kNone.contains(static_cast<unsigned long>(status.f_type));
}

/// A new folder for each sandbox: the kernel refuses an upper layer that was in use.
std::string new_folder(const fs::path& scratch) {
  std::string folder = (fs::canonical(scratch) / "layers-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    throw system_error(ErrorCode::kIo, scratch.string(), "no folder for layers can be made", errno);
  }
  return folder;
}

class Layers : public Sandbox {
 public:
  explicit Layers(const SandboxOptions& options);
  int enter(const char*& step) const override;

 private:
  struct Place {
    std::string folder;
    bool layer = false;
    bool in_memory = false;
    mode_t mode = 0755;
    uid_t owner = 0;
    gid_t group = 0;
    std::string upper;  // relative to the scratch folder
    std::string work;
    mutable int fd = -1;
  };
  /// What is mounted over the layers at `path`: what was there before, opened before they lie over it.
  struct Shared {
    std::string path;
    mutable int fd = -1;
  };
  /// A file whose bytes become those of `from`.
  struct Replaced {
    std::string path;
    std::string from;
    bool in_layer = false;  // where writes are thrown away
    mutable int fd = -1;
    mutable dev_t device = 0;  // of the user's file
  };

  void add(const Cover& cover, bool in_memory);
  bool is_in_layer(const fs::path& file) const;
  int leave_namespaces() const;
  int open_all() const;
  int make_read_only() const;
  int cover(const Place& place) const;
  int cover_all() const;
  int share() const;
  int replace() const;
  int hide() const;

  bool user_namespace_;
  std::string options_;  // common to all overlays
  std::string uid_map_, gid_map_;
  std::string scratch_;
  std::vector<std::string> kernels_;  // mounts of kernel file systems; they stay writable
  std::vector<Place> places_;
  std::vector<Shared> shared_;
  std::vector<Replaced> replaced_;
  std::vector<std::string> hidden_;
};

Layers::Layers(const SandboxOptions& options)
    : user_namespace_(!may_mount()),
      options_(!user_namespace_ && is_first_namespace() ? ",redirect_dir=on,metacopy=off" : ",userxattr"),
      uid_map_(fmt::format("{0} {0} 1", ::geteuid())),
      gid_map_(fmt::format("{0} {0} 1", ::getegid())),
      scratch_(new_folder(options.scratch)) {
  const bool in_memory = options.in_memory || !holds_layers(scratch_);
  const std::vector<Mount> mounts = parse_mounts(read_file("/proc/self/mountinfo"));
  for (const Mount& mount : mounts) {
    if (!mount.is_storage() && mount.writable) {
      kernels_.push_back(mount.point.string());
    }
  }
  for (const Cover& each : user_namespace_ ? cover_own(mounts, options.places) : cover_everything(mounts)) {
    add(each, in_memory || each.folder == "/dev/shm");
    if (each.layer) {
      for (const fs::path& path : meeting_points(each.folder)) {
        shared_.push_back({path.string()});
      }
    }
  }
  for (const fs::path& path : options.shared) {
    shared_.push_back({fs::canonical(path).string()});
  }
  for (const auto& [path, by] : options.replaced) {
    std::error_code unknown;
    if (const fs::path file = fs::canonical(path, unknown); !unknown) {
      replaced_.push_back({file.string(), fs::canonical(by).string(), is_in_layer(file)});
    }
  }
  for (const fs::path& path : options.hidden) {
    std::error_code unknown;
    if (fs::is_regular_file(path, unknown)) {
      hidden_.push_back(path.string());
    }
  }
  const bool reached = std::any_of(places_.begin(), places_.end(), [&](const Place& place) {
    return place.layer && is_within(options.needed, place.folder);
  });
  if (!options.needed.empty() && !reached) {
    remove_tree(scratch_);
    throw Error(ErrorCode::kMissing, options.needed.string(),
                "no layer can lie over the working folder: it, or a folder above it, belongs to another user or group");
  }
  make_folders(fs::path(scratch_) / "memory");
  make_folders(fs::path(scratch_) / "disk");
}

void Layers::add(const Cover& cover, bool in_memory) {
  struct stat status {};
  if (::stat(cover.folder.c_str(), &status) != 0) {
    return;
  }
  Place place;
  place.folder = cover.folder.string();
  place.layer = cover.layer;
  place.in_memory = in_memory;
  place.mode = status.st_mode & 07777U;
  place.owner = user_namespace_ ? ::geteuid() : status.st_uid;
  place.group = user_namespace_ ? ::getegid() : status.st_gid;
  const std::string stem = fmt::format("{}/{}", in_memory ? "memory" : "disk", places_.size());
  place.upper = stem + "u";
  place.work = stem + "w";
  places_.push_back(std::move(place));
}

bool Layers::is_in_layer(const fs::path& file) const {
  const Place* innermost = nullptr;
  for (const Place& place : places_) {
    if (is_within(file, place.folder) && (innermost == nullptr || place.folder.size() >= innermost->folder.size())) {
      innermost = &place;
    }
  }
  return innermost != nullptr && innermost->layer &&
         std::none_of(shared_.begin(), shared_.end(),
                      [&](const Shared& shared) { return is_within(file, shared.path); });
}

int Layers::leave_namespaces() const {
  if (::unshare(CLONE_NEWNS | (user_namespace_ ? CLONE_NEWUSER : 0)) != 0) {
    return errno;
  }
  if (user_namespace_) {
    const int denied = write_text("/proc/self/setgroups", "deny");
    if (const int failure = write_text("/proc/self/uid_map", uid_map_)) {
      return failure;
    }
    if (const int failure = write_text("/proc/self/gid_map", gid_map_)) {
      return denied != 0 ? denied : failure;
    }
  }
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 ? 0 : errno;
}

/// Opens descriptors, through which a folder stays reachable after something is mounted over it. Skips folders that no
/// longer exist.
int Layers::open_all() const {
  for (const Place& place : places_) {
    place.fd = ::open(place.folder.c_str(), O_PATH | O_CLOEXEC);
    if (place.fd < 0 && place.layer) {
      return errno;
    }
  }
  for (const Shared& shared : shared_) {
    shared.fd = ::open(shared.path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  }
  for (const Replaced& replaced : replaced_) {
    replaced.fd = ::open(replaced.from.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status {};
    if (replaced.fd < 0 || ::stat(replaced.path.c_str(), &status) != 0) {
      return errno;
    }
    replaced.device = status.st_dev;
  }
  return 0;
}

/// Makes everything read-only except the kernel's file systems and the scratch folder, which becomes the working
/// folder.
int Layers::make_read_only() const {
  if (::mount(scratch_.c_str(), scratch_.c_str(), nullptr, MS_BIND, nullptr) != 0 || ::chdir(scratch_.c_str()) != 0) {
    return errno;
  }
  if (const int failure = change_attributes("/", AT_RECURSIVE, {.set = MOUNT_ATTR_RDONLY})) {
    return failure;
  }
  for (const std::string& point : kernels_) {
    change_attributes(point.c_str(), 0, {.clear = MOUNT_ATTR_RDONLY});  // a hidden mount stays as it is
  }
  if (const int failure = change_attributes(".", 0, {.clear = MOUNT_ATTR_RDONLY})) {
    return failure;
  }
  return ::mount("unidle", "memory", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700") == 0 ? 0 : errno;
}

int Layers::cover(const Place& place) const {
  Text source;
  source << "/proc/self/fd/" << place.fd;
  if (!place.layer) {
    return ::mount(source.c_str(), place.folder.c_str(), nullptr, MS_BIND, nullptr) == 0 ? 0 : errno;
  }
  const char* upper = place.upper.c_str();
  if (::mkdir(upper, 0700) != 0 || ::mkdir(place.work.c_str(), 0700) != 0 ||
      ::chown(upper, place.owner, place.group) != 0 || ::chmod(upper, place.mode) != 0) {
    return errno;
  }
  Text overlay;
  overlay << "lowerdir=" << source.c_str() << ",upperdir=" << upper << ",workdir=" << place.work.c_str()
          << options_.c_str();
  return ::mount("unidle", place.folder.c_str(), "overlay", 0, overlay.c_str()) == 0 ? 0 : errno;
}

int Layers::cover_all() const {
  for (const Place& place : places_) {
    if (place.fd < 0) {
      continue;
    }
    if (const int failure = cover(place)) {
      return failure;
    }
    ::close(place.fd);
  }
  return 0;
}

int Layers::share() const {
  for (const Shared& shared : shared_) {
    Text source;
    source << "/proc/self/fd/" << shared.fd;
    if (shared.fd < 0 || ::mount(source.c_str(), shared.path.c_str(), nullptr, MS_BIND, nullptr) != 0) {
      continue;  // a socket that no longer exists
    }
    if (const int failure = change_attributes(shared.path.c_str(), 0, {.clear = MOUNT_ATTR_RDONLY})) {
      return failure;
    }
    ::close(shared.fd);
  }
  return 0;
}

/// Writes into the layer, where the command may rename, remove and write the file like any other. Where there is none,
/// a mount hides the file.
int Layers::replace() const {
  for (const Replaced& replaced : replaced_) {
    const int file =
        replaced.in_layer ? ::open(replaced.path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC) : kNoDescriptor;
    int failure = 0;
    if (is_in_overlay(file, replaced.device)) {
      failure = ::ftruncate(file, 0) == 0 ? copy_bytes(replaced.fd, file) : errno;
    } else {
      Text source;
      source << "/proc/self/fd/" << replaced.fd;
      failure = ::mount(source.c_str(), replaced.path.c_str(), nullptr, MS_BIND, nullptr) == 0 ? 0 : errno;
    }
    if (failure != 0) {  // the command would find the file that was to be replaced
      return failure;
    }
    ::close(file);
    ::close(replaced.fd);
  }
  return 0;
}

int Layers::hide() const {
  for (const std::string& path : hidden_) {
    if (::mount("/dev/null", path.c_str(), nullptr, MS_BIND, nullptr) != 0) {
      return errno;
    }
  }
  return 0;
}

int Layers::enter(const char*& step) const {
  step = "a mount namespace cannot be made";
  int failure = leave_namespaces();
  if (failure == 0) {
    step = "a folder cannot be opened";
    failure = open_all();
  }
  if (failure == 0) {
    step = "mounts cannot be made read-only";
    failure = make_read_only();
  }
  if (failure == 0) {
    step = "a layer (overlayfs) cannot be made";
    failure = cover_all();
  }
  if (failure == 0) {
    step = "a folder or a file cannot be mounted";
    failure = share();
  }
  if (failure == 0) {
    step = "a file cannot be replaced";
    failure = replace();
  }
  if (failure == 0) {
    step = "a file cannot be hidden";
    failure = hide();
  }
  return failure;
}

}  // namespace

std::unique_ptr<const Sandbox> make_layers(const SandboxOptions& options) { return std::make_unique<Layers>(options); }

}  // namespace unidle::observe
