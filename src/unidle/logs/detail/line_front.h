// The message of a log line, without the times, ranks, hosts, loggers and levels in front of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace unidle::logs::detail {

enum class Level : std::uint8_t { kNone, kBelowError, kError };

struct LogMessage {
  std::string_view text;  // without the front, and without blanks around it
  Level level = Level::kNone;
  std::optional<int> rank;
};

/// "[rank1]: KeyError: 4711", "[0]<stderr>:Killed", "2024-03-05 10:04:20 ERROR - out", "E0305 10:03:22.0 140 api.py:9]
/// out".
LogMessage message_in(std::string_view line);

/// The name of an exception class that `text` begins with, "torch.OutOfMemoryError"; empty where it begins with none.
std::string_view exception_name(std::string_view text);

}  // namespace unidle::logs::detail
