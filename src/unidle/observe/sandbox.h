// Keeps what a command writes away from the user's files.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace unidle::observe {

struct SandboxOptions {
  enum class Kind {
    kLayers,     // the command sees all files and may change them; what it writes goes to layers that are thrown away
    kWriteLock,  // the kernel refuses (EACCES) to write to anything but `shared` and what lies in /dev, /proc and /sys
  };

  Kind kind = Kind::kLayers;
  std::filesystem::path scratch;              // existing folder, for the layers; the caller removes it
  bool in_memory = false;                     // the layers are in memory, for where `scratch` cannot hold them
  std::vector<std::filesystem::path> places;  // where the command is likely to write
  std::filesystem::path needed;               // must be among what the command may change; empty: nothing must
  std::vector<std::filesystem::path> shared;  // stay what they are: what is written there is seen from outside
  std::vector<std::filesystem::path> hidden;  // files that read as empty
};

/// Prepared by the parent, entered by the child.
class Sandbox {
 public:
  virtual ~Sandbox() = default;
  /// Between fork and exec, in a child with one thread. 0, or the errno of what failed, named by `step`.
  /// Async-signal-safe.
  virtual int enter(const char*& step) const = 0;
  int enter() const {
    const char* step = nullptr;
    return enter(step);
  }
};

/// Throws kIo when the scratch folder cannot be prepared, kMissing when this kernel has nothing of that kind.
std::unique_ptr<const Sandbox> make_sandbox(const SandboxOptions& options);

/// Why there is no such sandbox here, in words: it is entered by a child process that does nothing else.
std::optional<std::string> why_no_sandbox(const SandboxOptions& options);

/// The two kinds.
std::unique_ptr<const Sandbox> make_layers(const SandboxOptions& options);
std::unique_ptr<const Sandbox> make_write_lock(const SandboxOptions& options);

}  // namespace unidle::observe
