// The last bytes of an output stream of the command.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "unidle/base/handle.h"

namespace unidle::observe {

/// Thread-safe.
class Tail {
 public:
  virtual ~Tail() = default;
  virtual std::string text() const = 0;
  /// Bytes of the stream so far; grows with every write.
  virtual std::uint64_t total() const = 0;
};

/// In memory shared with a forked process: that process appends, this one reads, neither waits.
class SharedTail final : public Tail {
 public:
  /// Keeps the last `limit` bytes. Throws kIo when the memory cannot be allocated.
  explicit SharedTail(std::size_t limit);
  ~SharedTail() override;
  SharedTail(const SharedTail&) = delete;
  SharedTail& operator=(const SharedTail&) = delete;

  /// One process at a time. Async-signal-safe.
  void append(const char* bytes, std::size_t count);
  std::string text() const override;
  std::uint64_t total() const override;

 private:
  struct Memory {
    std::atomic<std::uint64_t> begun;  // bytes written or being written
    std::atomic<std::uint64_t> total;  // bytes written
    char bytes[1];
  };

  std::size_t limit_;
  std::size_t capacity_;
  Memory* memory_;
};

/// Reads back a regular file that the command writes itself. Everything from the stream's position at construction
/// counts as its output.
class FileTail final : public Tail {
 public:
  /// Null when the file behind descriptor `stream` cannot be read.
  static std::unique_ptr<FileTail> open(int stream, std::size_t limit);

  std::string text() const override;
  std::uint64_t total() const override;

 private:
  FileTail(UniqueFd file, int stream, std::size_t limit);
  std::uint64_t end() const;

  UniqueFd file_;
  int stream_;
  std::size_t limit_;
  std::uint64_t start_;
  bool at_end_;  // the stream was at the end of the file
};

}  // namespace unidle::observe
