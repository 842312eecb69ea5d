// Writes Chrome trace JSON event by event.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "unidle/base/handle.h"
#include "unidle/base/write_target.h"

namespace unidle::trace::detail {

/// An id that no process has (pid_max is at most 2^22), for tracks that belong to no process.
constexpr std::int64_t kNoProcess = (std::int64_t{1} << 22U) + 1;

/// Not thread-safe. Writes to a temporary file beside `path`; close() renames it, and without close() it is removed.
/// Every function throws kIo (subject: the path). Times are in ns since the begin of the trace.
class EventFile {
 public:
  /// Compressed when `path` ends in .gz.
  explicit EventFile(const std::filesystem::path& path);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void slice(std::int64_t pid, std::int64_t tid, std::string_view name, std::int64_t t_ns, std::int64_t duration_ns,
             const nlohmann::json& args = {});
  void counter(std::int64_t pid, std::string_view name, std::int64_t t_ns, double value);
  /// `scope`: "g" across all tracks, "p" across the tracks of the process.
  void instant(std::int64_t pid, std::string_view name, std::int64_t t_ns, const char* scope,
               const nlohmann::json& args);
  /// Names a process, or one of its tracks when `tid` is not 0; `order` sorts processes.
  void name(std::int64_t pid, std::int64_t tid, std::string_view name, int order = 0);
  /// Writes an event of another trace, whose times are already on this clock.
  void raw(const nlohmann::json& event);
  /// Writes the end and `about` as otherData, and renames the file to its final name.
  void close(const nlohmann::json& about);
  std::uint64_t events() const { return events_; }

 private:
  struct Deflater;
  void begin_event();
  void flush(bool last);
  void write(std::string_view bytes);
  [[noreturn]] void fail(int error_number);

  std::filesystem::path path_;
  WriteTarget target_;
  std::string temporary_;
  UniqueFd fd_;
  std::unique_ptr<Deflater> deflater_;
  std::string buffer_;
  std::uint64_t events_ = 0;
};

}  // namespace unidle::trace::detail
