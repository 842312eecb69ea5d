// What the columns of CSV files about GPUs mean, whichever program wrote them, and their cells as readings.
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
  kKnown,  // the program has it, we do not use it
};

struct ColumnName {
  std::string_view name;  // without a unit
  Column column;
  double scale = 0;  // of a number without a unit of its own; 0: as usual for such a column
};

inline constexpr std::size_t kMostColumns = 64;
using Cells = std::array<std::string_view, kMostColumns>;
/// Splits at commas; returns how many cells there are, at most kMostColumns of them kept.
std::size_t split_cells(std::string_view line, Cells& cells);

struct Field {
  Column column = Column::kNone;
  double scale = 1;  // of a number without a unit of its own
};

struct Header {
  std::array<Field, kMostColumns> fields;
  std::size_t size = 0;
  bool has_id = false;
};

/// Nothing unless a cell names a measurement, and half of them are names of columns or one each names a GPU and its
/// utilisation.
std::optional<Header> read_header(std::string_view line, std::span<const ColumnName> names);
/// How many cells of the line name a column.
int known_columns(std::string_view line, std::span<const ColumnName> names);

/// Factor that a unit stands for, in bytes, watts, hertz as they are kept; 0 for an unknown one.
double unit_scale(std::string_view unit);
double default_scale(Column column);
/// A number with or without a unit; nothing for "[N/A]" and its like. The unit is what stands behind the number.
std::optional<double> cell_number(std::string_view cell, std::string_view& unit);

/// The readings of a row; nothing when a cell holds what no such column can hold: then the line is no row.
/// REQUIRES: `cells` holds header.size cells.
std::optional<GpuSample> sample_of(const Header& header, const Cells& cells);

}  // namespace unidle::logs::detail
