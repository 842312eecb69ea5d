// The end of a stream of the command's output.
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
  /// Bytes of the stream so far: tells whether something is new.
  virtual std::uint64_t total() const = 0;
};

/// In memory that a process which we fork shares with us: it appends, we read, neither ever waits.
class SharedTail final : public Tail {
 public:
  /// Keeps the last `limit` bytes. Throws kIo when there is no such memory.
  explicit SharedTail(std::size_t limit);
  ~SharedTail() override;
  SharedTail(const SharedTail&) = delete;
  SharedTail& operator=(const SharedTail&) = delete;

  /// For one process at a time. Async-signal-safe.
  void append(const char* bytes, std::size_t count);
  std::string text() const override;
  std::uint64_t total() const override;

 private:
  struct Memory {
    std::atomic<std::uint64_t> begun;  // bytes that are in, or being written
    std::atomic<std::uint64_t> total;  // bytes that are in
    char bytes[1];
  };

  std::size_t limit_;
  std::size_t capacity_;
  Memory* memory_;
};

/// Of a regular file that the command writes itself: read back from it. What is in the file from where the stream stood
/// when this was made counts as its output.
class FileTail final : public Tail {
 public:
  /// Null when the file of descriptor `stream` cannot be read.
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
  bool at_end_;  // the stream stood at the end of the file
};

}  // namespace unidle::observe
