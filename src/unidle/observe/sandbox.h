// Protects the user's files from what a command writes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace unidle::observe {

struct SandboxOptions {
  enum class Kind {
    kLayers,     // the command sees all files and may change them; its writes go to overlays that are thrown away
    kWriteLock,  // the kernel refuses (EACCES) all writes except to `shared` and below /dev, /proc and /sys
  };

  Kind kind = Kind::kLayers;
  std::filesystem::path scratch;              // existing folder for the overlays; the caller removes it
  bool in_memory = false;                     // keep the overlays in memory, if `scratch` cannot hold them
  std::vector<std::filesystem::path> places;  // where the command is likely to write
  std::filesystem::path needed;               // a folder that the command must be able to change; empty: none
  std::vector<std::filesystem::path> shared;  // not covered: writes are seen from outside
  std::vector<std::filesystem::path> hidden;  // files that read as empty
  /// For kLayers: by file, the one that the command finds in its place. Files that do not exist are left out.
  std::map<std::filesystem::path, std::filesystem::path> replaced;
};

/// The parent prepares it, the child enters it.
class Sandbox {
 public:
  virtual ~Sandbox() = default;
  /// Call between fork and exec, in a child with one thread. Returns 0, or the errno of the failed operation, whose
  /// name is in `step`. Async-signal-safe.
  virtual int enter(const char*& step) const = 0;
  int enter() const {
    const char* step = nullptr;
    return enter(step);
  }
};

/// Throws kIo when the scratch folder cannot be prepared, kMissing when this kernel does not support that kind.
std::unique_ptr<const Sandbox> make_sandbox(const SandboxOptions& options);

/// Why such a sandbox is not possible here, as text. Tries it in a child process that does nothing else.
std::optional<std::string> why_no_sandbox(const SandboxOptions& options);

std::unique_ptr<const Sandbox> make_layers(const SandboxOptions& options);
std::unique_ptr<const Sandbox> make_write_lock(const SandboxOptions& options);

}  // namespace unidle::observe
