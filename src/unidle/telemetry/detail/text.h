// Reads the kernel's text files. Private to telemetry.
#pragma once

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "unidle/base/characters.h"

namespace unidle::telemetry::detail {

/// /proc/PID under `root`.
std::filesystem::path process_folder(const std::filesystem::path& root, std::int64_t pid);

/// Returns the value after "key:" in a file of such lines.
std::optional<std::string> field(const std::string& text, std::string_view key);

/// Returns the number at the start of the text.
template <typename Number>
std::optional<Number> number(std::string_view text) {
  text = trimmed(text);
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end != text.data() ? std::optional(value) : std::nullopt;
}

struct CgroupFolder {
  int version = 2;
  std::string controller;  // v1: "cpu" or "memory"
  std::filesystem::path path;
};

/// Calls `visit` for each cgroup of this process, innermost first, up to and including the mount. In a container the
/// path is often the host's and does not exist; the mount is then the group itself.
void each_cgroup(const std::filesystem::path& root, const std::function<void(const CgroupFolder&)>& visit);

}  // namespace unidle::telemetry::detail
