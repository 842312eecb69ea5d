#include "unidle/experiment/protection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/experiment/trackers.h"
#include "unidle/experiment/working_folder.h"
#include "unidle/observe/mounts.h"

namespace unidle::experiment {

namespace fs = std::filesystem;
using observe::SandboxOptions;

namespace {

struct Names {
  Protection protection;
  std::string_view name;
  std::string_view words;
};

constexpr std::array<Names, 4> kNames = {{
    {Protection::kLayers, "layers",
     "what trials write goes to layers over the file system (overlayfs in a mount namespace), which are thrown away"},
    {Protection::kWriteLock, "write-lock",
     "trials run in copies of the working folder, and the kernel (Landlock) refuses them to write elsewhere"},
    {Protection::kCopy, "copy",
     "trials run in copies of the working folder; nothing keeps them from writing to files elsewhere"},
    {Protection::kInPlace, "in-place", "trials run in the working folder itself, and may write over your files"},
}};

const Names& names_of(Protection protection) { return kNames[static_cast<std::size_t>(protection)]; }

SandboxOptions layers_for(const fs::path& folder, const std::vector<std::string>& command, const fs::path& scratch) {
  SandboxOptions options;
  options.kind = SandboxOptions::Kind::kLayers;
  options.scratch = scratch;
  options.places = places_of(folder, command);
  options.needed = folder;
  return options;
}

void share_compiled(observe::Options& run, const fs::path& own, SandboxOptions& sandbox) {
  constexpr const char* kCache = "TORCHINDUCTOR_CACHE_DIR";
  if (std::getenv(kCache) != nullptr) {
    return;
  }
  const fs::path cache = own.parent_path() / "compiled";  // shared by trials beside this one: only the first compiles
  make_folders(cache);
  run.environment[kCache] = cache.string();
  sandbox.shared.push_back(cache);
}

/// Whether full paths lead the command to `file` itself instead of a copy: it runs the file by its full path, or an
/// argument or Python's search path names the working folder. The interpreter may lie in the folder.
bool is_read_in(const fs::path& folder, const fs::path& file, const std::vector<std::string>& command) {
  const char* path = std::getenv("PYTHONPATH");
  const auto names = [&](std::string_view text) { return text.find(folder.native()) != std::string_view::npos; };
  return names(path == nullptr ? "" : path) ||
         (!command.empty() &&
          (command.front() == folder / file || std::any_of(command.begin() + 1, command.end(), names)));
}

}  // namespace

std::string_view to_string(Protection protection) { return names_of(protection).name; }

std::optional<Protection> protection_named(std::string_view name) {
  for (const Names& each : kNames) {
    if (each.name == name) {
      return each.protection;
    }
  }
  return std::nullopt;
}

std::string_view in_words(Protection protection) { return names_of(protection).words; }

bool is_enforced(Protection protection) {
  return protection == Protection::kLayers || protection == Protection::kWriteLock;
}

bool is_isolated(Protection protection) { return protection != Protection::kInPlace; }

ProtectionOptions ways_to_protect(const fs::path& folder, const std::vector<std::string>& command,
                                  const fs::path& scratch) {
  ProtectionOptions found;
  const char* asked = std::getenv("UNIDLE_PROTECTION");
  if (const auto named = protection_named(asked == nullptr ? "" : asked)) {
    found.ways = {*named};
    found.asked_for = true;
    return found;
  }
  const auto lacks = [&](const std::string& what) { found.lacking += (found.lacking.empty() ? "" : "; ") + what; };
  if (const auto why = why_no_sandbox(layers_for(folder, command, scratch))) {
    lacks(fmt::format("no layers: {}", *why));
  } else {
    found.ways.push_back(Protection::kLayers);
  }
  std::error_code unknown;
  if (observe::is_within(fs::weakly_canonical(scratch, unknown), folder)) {
    lacks("no copy: temporary files lie in the working folder");
  } else if (const auto why = why_not_copied(folder, command)) {
    lacks(fmt::format("no copy: {}", *why));
  } else {
    SandboxOptions lock;
    lock.kind = SandboxOptions::Kind::kWriteLock;
    if (const auto why_not = why_no_sandbox(lock)) {
      lacks(fmt::format("no write lock: {}", *why_not));
    } else {
      found.ways.push_back(Protection::kWriteLock);
    }
    found.ways.push_back(Protection::kCopy);
  }
  found.ways.push_back(Protection::kInPlace);
  // A failing program may already have destroyed files, so ways without the kernel's help are only for machines that
  // offer no others.
  if (std::any_of(found.ways.begin(), found.ways.end(), is_enforced)) {
    std::erase_if(found.ways, [](Protection way) { return !is_enforced(way); });
  }
  if (found.ways.front() == Protection::kLayers) {
    found.lacking.clear();
  }
  return found;
}

void need_permission(const ProtectionOptions& found, Protection protection, bool may_write) {
  if (is_enforced(protection)) {
    return;
  }
  if (!may_write && !found.asked_for) {
    throw Error(ErrorCode::kUsage, "trials", found.lacking + "; trials could overwrite what the program writes",
                "--yes allows that");
  }
  spdlog::warn("{}{}{}", found.lacking, found.lacking.empty() ? "" : "; ", in_words(protection));
}

void protect(observe::Options& run, Protection protection, const fs::path& folder,
             const std::vector<std::string>& command, const fs::path& own) {
  for (const auto& [name, value] : muted_trackers(own)) {
    run.environment.try_emplace(name, value);
  }
  run.environment["UNIDLE_MUTED"] = "1";
  make_folders(own);
  SandboxOptions sandbox;
  if (protection == Protection::kLayers) {
    sandbox = layers_for(folder, command, own);
    sandbox.hidden = files_with_tokens();
    share_compiled(run, own, sandbox);
    run.folder = folder;
  } else if (protection != Protection::kInPlace) {
    run.folder = copy_for_trial(folder, command, own);
  }
  if (protection == Protection::kWriteLock) {
    sandbox.kind = SandboxOptions::Kind::kWriteLock;
    sandbox.shared = {own};
    make_folders(own / "tmp");
    run.environment["TMPDIR"] = (own / "tmp").string();
  }
  if (is_enforced(protection)) {
    run.sandbox = std::move(sandbox);
  }
}

void edit_for_trial(observe::Options& run, Protection protection, const fs::path& folder, const fs::path& own,
                    const std::vector<EditedFile>& edited) {
  if (protection != Protection::kLayers) {
    for (const EditedFile& each : edited) {
      if (is_read_in(folder, each.file, run.argv)) {
        throw Error(ErrorCode::kInput, each.file.string(),
                    "is read by its full path, so that a trial would not read an edited copy",
                    "make the change yourself");
      }
      const fs::path copy = run.folder / each.file;
      if (!observe::is_within(fs::weakly_canonical(copy), fs::canonical(run.folder))) {  // it may be a link itself
        throw Error(ErrorCode::kInput, each.file.string(),
                    "is a link, or behind a link, that leads out of the working folder", "make the change yourself");
      }
      write_file_like(copy, each.text, copy);
    }
    return;
  }
  const fs::path copies = own / "edited";
  for (const EditedFile& each : edited) {
    const fs::path copy = copies / each.file;
    make_folders(copy.parent_path());
    write_file_like(copy, each.text, run.folder / each.file);
    run.sandbox->replaced[run.folder / each.file] = copy;
  }
}

}  // namespace unidle::experiment
