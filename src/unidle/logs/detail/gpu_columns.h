// The meaning of columns in CSV files about GPUs, whichever program wrote them, and the readings in their cells.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "unidle/logs/gpu_log.h"

namespace unidle::logs::detail {

enum class Column {
  kNone,
  kTime,
  kId,
  kName,
  kUtilisation,
  kMemoryUtilisation,
  kMemoryUsed,
  kMemoryFree,
  kMemoryTotal,
  kPower,
  kPowerLimit,
  kTemperature,
  kSmClock,
  kSmClockMost,
  kLinkGen,
  kLinkGenMost,
  kLinkWidth,
  kLinkWidthMost,
  kThrottled,
  kKnown,  // known but not used
};

struct ColumnName {
  std::string_view name;  // without a unit
  Column column;
  double scale = 0;  // for a number without a unit; 0: the column's default
};

inline constexpr std::size_t kMostColumns = 64;
using Cells = std::array<std::string_view, kMostColumns>;
/// Splits at commas; returns the number of cells and stores at most kMostColumns of them.
std::size_t split_cells(std::string_view line, Cells& cells);

struct Field {
  Column column = Column::kNone;
  double scale = 1;  // for a number without a unit
};

struct Header {
  std::array<Field, kMostColumns> fields;
  std::size_t size = 0;
  bool has_id = false;
};

/// Nothing unless a cell names a measurement, and either half of the cells are column names or there is one for the GPU
/// and one for its utilisation.
std::optional<Header> read_header(std::string_view line, std::span<const ColumnName> names);
/// Number of cells that name a column.
int known_columns(std::string_view line, std::span<const ColumnName> names);

/// Factor to bytes, watts or hertz, as stored; 0 for an unknown unit.
double unit_scale(std::string_view unit);
double default_scale(Column column);
/// A number with or without a unit; nothing for "[N/A]" and similar. `unit` is the text after the number.
std::optional<double> cell_number(std::string_view cell, std::string_view& unit);

/// The readings of a row; nothing when a cell is not valid in its column: then the line is not a row. REQUIRES: `cells`
/// holds header.size cells.
std::optional<GpuSample> sample_of(const Header& header, const Cells& cells);

}  // namespace unidle::logs::detail
