// The message of a log line, without the times, ranks, hosts, loggers and levels before it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace unidle::logs::detail {

enum class Level : std::uint8_t { kNone, kBelowError, kError };

struct LogMessage {
  std::string_view text;  // without the prefixes and surrounding blanks
  Level level = Level::kNone;
  std::optional<int> rank;
};

/// "[rank1]: KeyError: 4711", "[0]<stderr>:Killed", "2024-03-05 10:04:20 ERROR - out", "E0305 10:03:22.0 140 api.py:9]
/// out".
LogMessage message_in(std::string_view line);

/// The exception class whose name starts `text`, "torch.OutOfMemoryError"; empty if there is none.
std::string_view exception_name(std::string_view text);

}  // namespace unidle::logs::detail
