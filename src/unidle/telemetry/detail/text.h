// Reading the kernel's text files. Private to telemetry.
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

/// The value after "key:" in a file of such lines.
std::optional<std::string> field(const std::string& text, std::string_view key);

/// The number that the text begins with.
template <typename Number>
std::optional<Number> number(std::string_view text) {
  text = trimmed(text);
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end != text.data() ? std::optional(value) : std::nullopt;
}

struct CgroupFolder {
  int version = 2;
  std::string controller;  // of version 1: "cpu" or "memory"
  std::filesystem::path path;
};

/// Calls `visit` for every cgroup that this process is in, the innermost first and then all above it, the mount
/// included. In a container the path is often that of the host and does not exist here; the mount is then the group
/// itself.
void each_cgroup(const std::filesystem::path& root, const std::function<void(const CgroupFolder&)>& visit);

}  // namespace unidle::telemetry::detail
