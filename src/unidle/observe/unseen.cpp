#include "unidle/observe/unseen.h"

#include <algorithm>
#include <vector>

#include "unidle/base/split.h"
#include "unidle/observe/python.h"
#include "unidle/telemetry/process_tree.h"

namespace unidle::observe {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kShownArguments = 4;
constexpr std::size_t kMostProcesses = 64;

std::vector<std::string_view> split_at_zeros(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = text.find('\0');
    words.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return words;
}

bool is_python(std::string_view program) {
  const std::size_t slash = program.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? program : program.substr(slash + 1);
  return name.starts_with("python") || name.starts_with("pypy");
}

/// The letters of Python's own options, up to the script, -c or -m; one word may hold several. -W and -X take a value.
std::string options_of(const std::vector<std::string_view>& arguments) {
  std::string letters;
  for (std::size_t i = 1; i < arguments.size() && arguments[i].size() > 1 && arguments[i][0] == '-'; ++i) {
    for (std::size_t at = 1; at < arguments[i].size(); ++at) {
      const char letter = arguments[i][at];
      if (letter == 'c' || letter == 'm' || letter == '-') {
        return letters;
      }
      if (letter == 'W' || letter == 'X') {
        i += at + 1 == arguments[i].size() ? 1 : 0;
        break;
      }
      letters += letter;
    }
  }
  return letters;
}

bool has_torch(const fs::path& process) {
  const auto maps = try_read_file(process / "maps");
  return maps && maps->find("/libtorch_cpu.so") != std::string::npos;
}

}  // namespace

std::string_view to_string(UnseenReason why) {
  switch (why) {
    case UnseenReason::kIsolated: return "isolated";
    case UnseenReason::kNoSite: return "no-site";
    case UnseenReason::kEnvironment: return "environment";
    case UnseenReason::kPath: return "path";
    case UnseenReason::kNoPython: return "no-python";
    case UnseenReason::kOther: break;
  }
  return "other";
}

UnseenReason why_unseen(std::string_view arguments, std::string_view variables, std::string_view shim) {
  const std::vector<std::string_view> words = split_at_zeros(arguments);
  if (words.empty() || !is_python(words[0])) {
    return UnseenReason::kNoPython;
  }
  const std::string options = options_of(words);
  if (options.find_first_of("IE") != std::string::npos) {
    return UnseenReason::kIsolated;
  }
  if (options.find('S') != std::string::npos) {
    return UnseenReason::kNoSite;
  }
  constexpr std::string_view kPath = "PYTHONPATH=";
  std::optional<std::string_view> path;
  bool folder = false;
  for (const std::string_view variable : split_at_zeros(variables)) {
    path = variable.starts_with(kPath) ? variable.substr(kPath.size()) : path;
    folder = folder || variable.starts_with("UNIDLE_PROBE_DIR=");
  }
  if (!path || !folder) {
    return UnseenReason::kEnvironment;
  }
  const std::vector<std::string_view> folders = split(*path, ':');
  return shim.empty() || std::ranges::find(folders, shim) != folders.end() ? UnseenReason::kOther : UnseenReason::kPath;
}

std::optional<UnseenProcess> find_unseen(std::int64_t root_pid, const std::set<std::int64_t>& reporting,
                                         const fs::path& root) {
  std::vector<std::int64_t> tree = telemetry::process_tree(root_pid, root);
  tree.resize(std::min(tree.size(), kMostProcesses));
  const std::string shim = find_python_shim().value_or("").string();
  for (const std::int64_t pid : tree) {
    const auto stat = telemetry::read_process_stat(pid, root);
    const fs::path process = root / "proc" / std::to_string(pid);
    if (!stat || reporting.contains(pid) || reporting.contains(stat->parent) || !has_torch(process)) {
      continue;
    }
    const std::string arguments = try_read_file(process / "cmdline").value_or("");
    UnseenProcess found{pid, "", why_unseen(arguments, try_read_file(process / "environ").value_or(""), shim)};
    const std::vector<std::string_view> words = split_at_zeros(arguments);
    for (std::size_t i = 0; i < std::min(words.size(), kShownArguments); ++i) {
      found.command += (i > 0 ? " " : "") + std::string(words[i]);
    }
    return found;
  }
  return std::nullopt;
}

}  // namespace unidle::observe
