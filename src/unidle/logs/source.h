// The bytes of a log, plain or gzip, UTF-8 or UTF-16, in order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unidle/base/handle.h"

namespace unidle::logs {

/// Receives the number of bytes read and the file's size, both as stored; possibly on the read-ahead thread, but never
/// on two threads at once.
using OnRead = std::function<void(std::uint64_t taken, std::uint64_t of)>;

/// Recognises gzip by its first bytes and decompresses it; UTF-16, as PowerShell writes it, by its byte order mark and
/// gives it as UTF-8. Not thread-safe.
class Source {
 public:
  /// Throws kInput (subject: the path) when the file is missing, unreadable or a folder.
  explicit Source(const std::filesystem::path& path, OnRead on_read = {});
  /// Reads from memory, for tests and fuzzing. `name` replaces the path; `bytes` must outlive the source.
  Source(std::string name, std::string_view bytes);
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  /// Fills the front of `into` and returns the number of bytes; 0 only at the end. Throws kInput when a gzip stream is
  /// damaged or truncated, or the disk cannot be read.
  std::size_t read(std::span<char> into);

  const std::string& name() const { return name_; }
  bool compressed() const { return inflater_ != nullptr; }
  /// Stored size of the file; 0 for a pipe.
  std::uint64_t stored_bytes() const { return stored_bytes_; }

 private:
  struct Inflater;
  struct Utf16;
  std::size_t read_stored(std::span<char> into);
  void look_at_first_bytes();
  std::size_t inflate_into(std::span<char> into);
  std::size_t decode_into(std::span<char> into);

  std::string name_;
  OnRead on_read_;
  UniqueFd fd_;
  std::string_view memory_;
  std::vector<char> stored_;  // read but not returned yet
  std::size_t stored_at_ = 0;
  std::uint64_t stored_bytes_ = 0;
  std::uint64_t taken_bytes_ = 0;
  std::unique_ptr<Inflater> inflater_;
  std::unique_ptr<Utf16> utf16_;
};

}  // namespace unidle::logs
