// Splits a table's files into chunks of whole records for many threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/data/detail/open_files.h"
#include "unidle/data/tables/parts.h"
#include "unidle/data/tables/record_scan.h"

namespace unidle::data::tables {

/// A buffer reused for all chunks, with spare space after the text.
class ChunkBuffer {
 public:
  char* reserve(std::size_t bytes);
  char* data() { return data_.get(); }

 private:
  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0;
};

/// Whole records of one part, each with its line end, followed by 64 zero bytes. The last record of a part may have an
/// unclosed quote, which its parser reports.
struct Chunk {
  std::int64_t number = 0;  // in table order
  std::size_t part = 0;
  std::uint64_t offset = 0;  // of text, in the file
  std::string_view text;     // in `buffer`; may be empty
  ChunkBuffer buffer;
};

/// Hands out the data of all parts in order, by byte ranges. A range contains the records that begin in it. Record
/// starts are known only by scanning a file from its start (a line feed may be within quotes), so ranges are scanned
/// one after the other, but read and parsed in parallel. Thread-safe.
class Chunks {
 public:
  static constexpr std::size_t kChunkBytes = std::size_t{4} << 20;
  static constexpr std::size_t kMostRecordBytes = std::size_t{64} << 20;

  explicit Chunks(const CsvLayout& layout, std::size_t chunk_bytes = kChunkBytes);

  /// Fills `chunk` with the next chunk; returns false at the end. Throws kInput with "file:line" for a record longer
  /// than 64 MiB, and when a file has become shorter; next() then returns false to all other threads.
  bool next(Chunk& chunk);
  /// Makes next() return false.
  void stop();
  /// "path:line" of an offset, for messages, or "path: row N" if the text was converted. Counts from the file's start.
  std::string place(std::size_t part, std::uint64_t offset);
  /// Bytes of data in all parts.
  std::uint64_t bytes() const;

 private:
  struct Range {
    std::size_t part;
    std::uint64_t begin;
    std::uint64_t end;
  };
  bool fill(const Range& range, Chunk& chunk);
  void read(std::size_t part, std::uint64_t offset, char* to, std::size_t bytes);
  /// Scans this range after all earlier ones. Returns nothing when stopped.
  std::optional<RecordScan> scan_range(const Range& range, std::int64_t number, std::string_view text,
                                       CsvState& before);
  /// Reads past the range to the end of its last record; returns the new number of bytes.
  std::size_t finish_last_record(const Range& range, RecordScan scan, ChunkBuffer& buffer);

  const CsvLayout& layout_;
  detail::OpenFiles files_;
  std::vector<Range> ranges_;
  std::mutex mutex_;
  std::condition_variable turn_changed_;
  std::int64_t next_ = 0;  // next range to hand out; guarded by mutex_, like turn_
  std::int64_t turn_ = 0;  // next range to scan
  bool stopped_ = false;
  CsvState state_ = CsvState::kRecord;
};

}  // namespace unidle::data::tables
