// A monitoring session, from start to stop.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "unidle/base/clock.h"
#include "unidle/language/language.h"

namespace unidle::monitor {

enum class Format { kLive, kLines, kCsv, kJson, kSilent };

struct Options {
  double seconds = 0;  // 0: until stopped
  std::int64_t interval_ns = kNsPerSecond;
  std::optional<std::int64_t> pid;
  std::optional<std::filesystem::path> record;
  Format format = Format::kLines;
  std::string listen;                      // empty: no exporter
  std::string web;                         // empty: no page for browsers
  int width = 80;                          // of the summary, in columns
  Language language = Language::kEnglish;  // JSON and CSV are always English
  /// Writes the output; returns false when nobody reads it any more, which ends the session.
  std::function<bool(std::string_view)> print;
  std::function<void(std::string_view)> note;  // progress and, with CSV, the summary
};

/// Watches until the time is up, the given process ends, q is pressed, or SIGINT, SIGTERM or SIGHUP arrives; then
/// prints the summary. Blocks these signals in this thread and the threads it starts. Throws kInput for a process that
/// does not exist, and everything Exporter and WebView throw.
void watch(const Options& options);

}  // namespace unidle::monitor
