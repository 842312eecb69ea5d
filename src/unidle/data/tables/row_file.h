// The built form of a table: one file of rows. row_file.cpp documents its format.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "unidle/base/disk.h"
#include "unidle/base/handle.h"
#include "unidle/data/sources/table.h"

namespace unidle::data::tables {

constexpr std::uint32_t kRowFileVersion = 2;

/// The metadata of a row file.
struct RowFileFacts {
  nlohmann::json key;     // the request it was built for
  nlohmann::json inputs;  // the state of the files it was built from
  std::size_t features = 0;
  std::vector<TableColumn> columns;
  std::vector<LeftOutColumn> left_out;
  std::vector<JoinedTable> joins;
};

/// Writes a row file under a temporary name and renames it when it is complete. Throws kIo with the file. Not
/// thread-safe.
class RowFileWriter {
 public:
  RowFileWriter(const std::filesystem::path& path, std::size_t width, Disk& disk);
  ~RowFileWriter();  // removes an unfinished file
  RowFileWriter(const RowFileWriter&) = delete;
  RowFileWriter& operator=(const RowFileWriter&) = delete;

  /// Appends whole rows.
  void append(std::span<const float> values);
  /// Appends the validation flags of the appended rows; none without a split.
  void append_validation(std::span<const std::uint8_t> flags);
  std::int64_t rows() const { return rows_; }
  void finish(const RowFileFacts& facts);

 private:
  void write(std::string_view bytes);
  void end_block();

  std::filesystem::path path_;
  std::filesystem::path unfinished_;
  Disk& disk_;
  UniqueFd fd_;
  std::size_t width_;
  std::int64_t rows_ = 0;
  std::int64_t rows_in_block_ = 0;
  std::string validation_;
  std::vector<std::uint64_t> hashes_;
  struct Hasher;
  std::unique_ptr<Hasher> hasher_;
};

/// A memory-mapped row file. Thread-safe.
class RowFile {
 public:
  /// Returns null when the file is missing, incomplete, or of another version: it must then be rebuilt.
  static std::unique_ptr<RowFile> open(const std::filesystem::path& path, Disk& disk);
  ~RowFile();
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const RowFileFacts& facts() const { return facts_; }
  std::int64_t rows() const { return rows_; }
  std::size_t width() const { return width_; }
  /// By row, 1 for validation; empty without a split.
  std::span<const std::uint8_t> validation() const { return validation_; }

  /// Verifies the row's block at its first use. Throws kCorrupt when it is damaged, and removes the file.
  const float* row(std::int64_t number) const {
    const auto block = static_cast<std::size_t>(number >> block_shift_);
    if (checked_[block].load(std::memory_order_acquire) == 0) {
      check(block);
    }
    return values_ + static_cast<std::size_t>(number) * width_;
  }
  /// The address of a row, for prefetching.
  const float* place(std::int64_t number) const { return values_ + static_cast<std::size_t>(number) * width_; }

 private:
  RowFile() = default;
  bool parse(std::string_view bytes);
  void check(std::size_t block) const;

  std::filesystem::path path_;
  std::string_view bytes_;
  const float* values_ = nullptr;
  std::size_t width_ = 0;
  std::int64_t rows_ = 0;
  int block_shift_ = 0;
  RowFileFacts facts_;
  std::span<const std::uint8_t> validation_;
  const std::byte* hashes_ = nullptr;
  std::unique_ptr<std::atomic<std::uint8_t>[]> checked_;
};

}  // namespace unidle::data::tables
