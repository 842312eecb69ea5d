// A table's files in pieces of whole records, for many threads.
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

/// Memory that is kept from chunk to chunk, with room behind the text.
class ChunkBuffer {
 public:
  char* reserve(std::size_t bytes);
  char* data() { return data_.get(); }

 private:
  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0;
};

/// Whole records of one part, each with its line end; 64 zero bytes follow. The last one of a part may have
/// a quote that is not closed: whoever reads it tells where.
struct Chunk {
  std::int64_t number = 0;  // in the order of the table
  std::size_t part = 0;
  std::uint64_t offset = 0;  // of text, in the file
  std::string_view text;     // in `buffer`; may be empty
  ChunkBuffer buffer;
};

/// Hands out the data of all parts, byte range by byte range, in order. A range has the records that begin in it. Where
/// records begin is known only from the start of a file on (a line feed may stand within quotes), so that the ranges
/// are looked through one after the other; they are read, and what is made of them is made, side by side.
/// Thread-safe.
class Chunks {
 public:
  static constexpr std::size_t kChunkBytes = std::size_t{4} << 20;
  static constexpr std::size_t kMostRecordBytes = std::size_t{64} << 20;

  explicit Chunks(const CsvLayout& layout, std::size_t chunk_bytes = kChunkBytes);

  /// The next one into `chunk`; false behind the last. Throws kInput with "file:line" for a record that has no
  /// end in 64 MiB, and when a file is shorter than it was; the others then get false.
  bool next(Chunk& chunk);
  /// No more chunks: next() gives false.
  void stop();
  /// "path:line" of a place, for messages, or "path: row N" where the text was made of the file: counts from its start.
  std::string place(std::size_t part, std::uint64_t offset);
  /// The bytes of all parts that are data.
  std::uint64_t bytes() const;

 private:
  struct Range {
    std::size_t part;
    std::uint64_t begin;
    std::uint64_t end;
  };
  bool fill(const Range& range, Chunk& chunk);
  void read(std::size_t part, std::uint64_t offset, char* to, std::size_t bytes);
  /// Waits until all ranges before were looked through, and looks through this one. Nothing when that was stopped.
  std::optional<RecordScan> look_through(const Range& range, std::int64_t number, std::string_view text,
                                         CsvState& before);
  /// Reads on behind the range to the end of the record that begins in it; returns the bytes there are then.
  std::size_t finish_last_record(const Range& range, RecordScan scan, ChunkBuffer& buffer);

  const CsvLayout& layout_;
  detail::OpenFiles files_;
  std::vector<Range> ranges_;
  std::mutex mutex_;
  std::condition_variable turn_changed_;
  std::int64_t next_ = 0;  // range to hand out; these are guarded by mutex_
  std::int64_t turn_ = 0;  // range to look through
  bool stopped_ = false;
  CsvState state_ = CsvState::kRecord;
};

}  // namespace unidle::data::tables
