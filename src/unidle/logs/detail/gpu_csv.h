// CSV files about GPUs: a header that names the columns, possibly repeated, and one row per GPU.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "unidle/logs/detail/gpu_columns.h"
#include "unidle/logs/gpu_log.h"

namespace unidle::logs::detail {

/// Identifies GPUs in rows without an id by their place in a round: rows of one round are milliseconds apart.
class RoundCounter {
 public:
  std::string_view id_of(const GpuSample& sample);

 private:
  std::optional<std::int64_t> last_ns_;
  int place_ = 0;
  std::array<char, 16> text_{};
};

/// Guesses the columns of a row without a header; nothing if it cannot.
using HeaderFromRow = std::optional<Header> (*)(std::string_view row);

/// Not thread-safe.
class GpuCsvReader {
 public:
  GpuCsvReader(GpuLog& log, const Window& window, std::span<const ColumnName> names, HeaderFromRow headless)
      : log_(log), window_(window), names_(names), headless_(headless) {}

  void read(std::string_view line);
  std::int64_t headers() const { return headers_; }

 private:
  bool row(std::string_view line);
  bool may_be_row(std::string_view line) const;

  GpuLog& log_;
  const Window& window_;
  std::span<const ColumnName> names_;
  HeaderFromRow headless_;
  std::optional<Header> header_;
  RoundCounter rounds_;
  std::int64_t headers_ = 0;
};

/// Whether most lines of `head` are headers, rows or error messages of the program. The last line may be cut off.
bool is_gpu_csv(std::string_view head, std::span<const ColumnName> names, HeaderFromRow headless);

}  // namespace unidle::logs::detail
