#include "unidle/data/tables/chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "unidle/base/error.h"
#include "unidle/data/detail/line_ends.h"

namespace unidle::data::tables {

namespace {

constexpr std::size_t kRoomBehind = 64;

}  // namespace

char* ChunkBuffer::reserve(std::size_t bytes) {
  if (bytes > capacity_) {
    const std::size_t wanted = std::max(bytes, capacity_ + capacity_ / 2);
    std::unique_ptr<char[]> larger(new char[wanted]);
    if (capacity_ > 0) {
      std::memcpy(larger.get(), data_.get(), capacity_);
    }
    data_ = std::move(larger);
    capacity_ = wanted;
  }
  return data_.get();
}

Chunks::Chunks(const CsvLayout& layout, std::size_t chunk_bytes) : layout_(layout) {
  for (std::size_t part = 0; part < layout.parts.size(); ++part) {
    files_.add(layout.parts[part].read_from());
    const std::uint64_t end = layout.parts[part].bytes;
    for (std::uint64_t at = layout.parts[part].data_offset; at < end; at += chunk_bytes) {
      ranges_.push_back({part, at, std::min<std::uint64_t>(end, at + chunk_bytes)});
    }
  }
}

std::uint64_t Chunks::bytes() const {
  std::uint64_t sum = 0;
  for (const Range& range : ranges_) {
    sum += range.end - range.begin;
  }
  return sum;
}

void Chunks::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  turn_changed_.notify_all();
}

bool Chunks::next(Chunk& chunk) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || next_ == static_cast<std::int64_t>(ranges_.size())) {
      return false;
    }
    chunk.number = next_++;
  }
  try {
    return fill(ranges_[static_cast<std::size_t>(chunk.number)], chunk);
  } catch (...) {
    stop();
    throw;
  }
}

void Chunks::read(std::size_t part, std::uint64_t offset, char* to, std::size_t bytes) {
  files_.read(part, offset, std::as_writable_bytes(std::span(to, bytes)));
  if (layout_.parts[part].carriages) {
    detail::feed_lines(to, to + bytes);
  }
}

bool Chunks::fill(const Range& range, Chunk& chunk) {
  auto bytes = static_cast<std::size_t>(range.end - range.begin);
  char* data = chunk.buffer.reserve(bytes + kRoomBehind);
  read(range.part, range.begin, data, bytes);
  CsvState before{};
  const std::optional<RecordScan> scan = scan_range(range, chunk.number, {data, bytes}, before);
  if (!scan) {
    return false;
  }
  const std::size_t first = before == CsvState::kRecord ? 0 : std::min(scan->first_end, bytes);
  if (first < bytes && scan->state != CsvState::kRecord) {
    bytes = finish_last_record(range, *scan, chunk.buffer);
    data = chunk.buffer.data();
  }
  std::memset(data + bytes, 0, kRoomBehind);
  chunk.part = range.part;
  chunk.offset = range.begin + first;
  chunk.text = {data + first, bytes - first};
  return true;
}

std::optional<RecordScan> Chunks::scan_range(const Range& range, std::int64_t number, std::string_view text,
                                             CsvState& before) {
  {
    std::unique_lock lock(mutex_);
    turn_changed_.wait(lock, [&] { return turn_ == number || stopped_; });
    if (stopped_) {
      return std::nullopt;
    }
  }
  // No other thread touches state_ until turn_ advances.
  before = range.begin == layout_.parts[range.part].data_offset ? CsvState::kRecord : state_;
  const RecordScan scan = scan_records(before, text, layout_.delimiter);
  state_ = scan.state;
  const std::lock_guard lock(mutex_);
  ++turn_;
  turn_changed_.notify_all();
  return scan;
}

std::size_t Chunks::finish_last_record(const Range& range, RecordScan scan, ChunkBuffer& buffer) {
  constexpr std::size_t kAtOnce = 64 * 1024;
  const std::uint64_t file_end = layout_.parts[range.part].bytes;
  std::uint64_t at = range.end;
  std::uint64_t opened = range.begin + scan.opened;  // meaningful only within quotes
  while (at < file_end) {
    const auto have = static_cast<std::size_t>(at - range.begin);
    const auto more = static_cast<std::size_t>(std::min<std::uint64_t>(kAtOnce, file_end - at));
    if (at - range.end > kMostRecordBytes) {
      throw Error(ErrorCode::kInput, place(range.part, opened), "a record has more than 64 MiB",
                  "is a quote left open?");
    }
    char* to = buffer.reserve(have + more + kRoomBehind) + have;
    read(range.part, at, to, more);
    const RecordScan next = scan_records(scan.state, {to, more}, layout_.delimiter);
    if (next.first_end != std::string_view::npos) {
      return have + next.first_end;
    }
    opened = next.opened == std::string_view::npos ? opened : at + next.opened;
    scan.state = next.state;
    at += more;
  }
  const auto bytes = static_cast<std::size_t>(file_end - range.begin);
  buffer.reserve(bytes + 1 + kRoomBehind)[bytes] = '\n';
  return bytes + 1;
}

std::string Chunks::place(std::size_t part, std::uint64_t offset) {
  std::vector<char> text(std::size_t{1} << 20);
  std::int64_t lines = 0;
  std::int64_t records = 0;  // including the header
  bool quoted = false;
  for (std::uint64_t at = 0; at < offset;) {
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(text.size(), offset - at));
    read(part, at, text.data(), bytes);
    for (const char byte : std::span(text).first(bytes)) {
      quoted = quoted != (byte == '"');
      lines += byte == '\n' ? 1 : 0;
      records += byte == '\n' && !quoted ? 1 : 0;
    }
    at += bytes;
  }
  const CsvPart& of = layout_.parts[part];
  return of.text.empty() ? fmt::format("{}:{}", of.path, lines + 1) : fmt::format("{}: row {}", of.path, records);
}

}  // namespace unidle::data::tables
