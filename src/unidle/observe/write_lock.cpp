// Landlock: the kernel refuses changes to files outside a few folders.
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "unidle/base/error.h"
#include "unidle/base/handle.h"
#include "unidle/observe/sandbox.h"

namespace unidle::observe {

namespace {

// From versions of <linux/landlock.h> later than the oldest that the build supports.
constexpr std::uint64_t kRefer = 1ULL << 13;     // since version 2
constexpr std::uint64_t kTruncate = 1ULL << 14;  // since version 3

constexpr std::uint64_t kChanges = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                   LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                   LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                   LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                   LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
constexpr std::uint64_t kOfFiles = LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;

/// 0 if the kernel has no Landlock or it is switched off.
int version() {
  return static_cast<int>(
      std::max(0L, ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION)));
}

class WriteLock : public Sandbox {
 public:
  explicit WriteLock(UniqueFd rules) : rules_(std::move(rules)) {}

  int enter(const char*& step) const override {
    step = "Landlock refuses";
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::syscall(SYS_landlock_restrict_self, rules_.get(), 0) != 0) {
      return errno;
    }
    return 0;
  }

 private:
  UniqueFd rules_;
};

void allow(int rules, const std::filesystem::path& path, std::uint64_t access) {
  const UniqueFd at(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status {};
  if (!at || ::fstat(at.get(), &status) != 0) {
    return;
  }
  const landlock_path_beneath_attr rule{S_ISDIR(status.st_mode) ? access : access & kOfFiles, at.get()};
  if (::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
    throw system_error(ErrorCode::kMissing, path.string(), "Landlock takes no rule", errno);
  }
}

}  // namespace

std::unique_ptr<const Sandbox> make_write_lock(const SandboxOptions& options) {
  const int known = version();
  if (known == 0) {
    throw Error(ErrorCode::kMissing, "Landlock", "this kernel has no Landlock, or it is switched off");
  }
  const std::uint64_t access = kChanges | (known >= 2 ? kRefer : 0) | (known >= 3 ? kTruncate : 0);
  const struct {
    std::uint64_t handled;
  } attributes{access};
  UniqueFd rules(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
  if (!rules) {
    throw system_error(ErrorCode::kMissing, "Landlock", "no rules can be made", errno);
  }
  for (const std::filesystem::path& shared : options.shared) {
    allow(rules.get(), shared, access);
  }
  for (const char* of_the_kernel : {"/dev", "/proc", "/sys"}) {
    allow(rules.get(), of_the_kernel, access);
  }
  return std::make_unique<WriteLock>(std::move(rules));
}

}  // namespace unidle::observe
