#include "unidle/logs/detail/gpu_columns.h"

#include <algorithm>
#include <charconv>

#include "unidle/base/characters.h"
#include "unidle/logs/detail/numbers.h"
#include "unidle/logs/timestamp.h"

namespace unidle::logs::detail {

namespace {

/// A name followed by its unit: "memory.used [MiB]", "VRAM Total Memory (B)".
Field field_of(std::string_view cell, std::span<const ColumnName> names) {
  std::string_view unit;
  for (const std::string_view signs : {" []", " ()"}) {
    const std::size_t bracket = cell.rfind(signs.substr(0, 2));
    if (bracket != std::string_view::npos && cell.back() == signs.back()) {
      unit = cell.substr(bracket + 2, cell.size() - bracket - 3);
      cell = cell.substr(0, bracket);
    }
  }
  for (const ColumnName& one : names) {
    if (one.name == cell) {
      const double scale = unit_scale(unit);
      return {one.column, scale > 0 ? scale : one.scale > 0 ? one.scale : default_scale(one.column)};
    }
  }
  return {};
}

bool is_measurement(Column column) { return column > Column::kName && column < Column::kKnown; }

/// A time with a date, or seconds or milliseconds since 1970. Nothing for a time without a date: "10:00:05".
std::optional<std::int64_t> time_of(std::string_view cell) {
  std::string_view rest = cell;
  if (const auto date = take_date_time(rest)) {
    return date;
  }
  constexpr double kFirst = 631152000;  // 1990
  constexpr double kLast = 4102444800;  // 2100
  const auto number = whole_number(cell);
  if (!number || *number < kFirst) {
    return std::nullopt;
  }
  const double seconds = *number < kLast ? *number : *number / 1000;
  return seconds < kLast ? std::optional(static_cast<std::int64_t>(seconds * 1e9)) : std::nullopt;
}

/// Placeholders for a missing reading: "[N/A]", "[Unknown Error]", "N/A", "-", "ERR!".
bool is_no_reading(std::string_view cell) {
  return cell.empty() || cell.front() == '[' || cell == "N/A" || cell == "-" || cell == "ERR!";
}

std::optional<double> cell_value(std::string_view cell, const Field& field) {
  std::string_view unit;
  const auto value = cell_number(cell, unit);
  if (!value) {
    return std::nullopt;
  }
  const double scale = unit.empty() ? field.scale : unit_scale(unit);
  return scale > 0 ? std::optional(*value * scale) : std::nullopt;
}

/// "Active", or the reasons as a bit mask of NVML: "0x0000000000000020".
std::optional<bool> is_throttled(std::string_view cell) {
  constexpr std::uint64_t kHeatOrHardware = 0x8 | 0x20 | 0x40;
  if (cell == "Active" || cell == "Not Active") {
    return cell == "Active";
  }
  std::uint64_t reasons = 0;
  const bool mask = cell.starts_with("0x") &&
                    std::from_chars(cell.data() + 2, cell.data() + cell.size(), reasons, 16).ec == std::errc{};
  return mask ? std::optional((reasons & kHeatOrHardware) != 0) : std::nullopt;
}

/// False if the cell holds something that is not valid in this column: then the line is broken, not the value missing.
bool fill(GpuSample& sample, const Field& field, std::string_view cell) {
  const auto value = [&] { return cell_value(cell, field); };
  switch (field.column) {
    case Column::kTime: sample.t_ns = time_of(cell); break;
    case Column::kId: sample.id = cell; return !cell.empty();
    case Column::kName: sample.name = cell; return true;
    case Column::kUtilisation: sample.utilisation = value(); break;
    case Column::kMemoryUtilisation: sample.memory_utilisation = value(); break;
    case Column::kMemoryUsed: sample.memory_used = value(); break;
    case Column::kMemoryFree: sample.memory_free = value(); break;
    case Column::kMemoryTotal: sample.memory_total = value(); break;
    case Column::kPower: sample.power_w = value(); break;
    case Column::kPowerLimit: sample.power_limit_w = value(); break;
    case Column::kTemperature: sample.temperature_c = value(); break;
    case Column::kSmClock: sample.sm_mhz = value(); break;
    case Column::kSmClockMost: sample.sm_mhz_most = value(); break;
    case Column::kLinkGen: sample.link_gen = value(); break;
    case Column::kLinkGenMost: sample.link_gen_most = value(); break;
    case Column::kLinkWidth: sample.link_width = value(); break;
    case Column::kLinkWidthMost: sample.link_width_most = value(); break;
    case Column::kThrottled:
      if (const auto throttled = is_throttled(cell)) {
        sample.throttled = sample.throttled.value_or(false) || *throttled;
      }
      break;
    case Column::kNone:
    case Column::kKnown: break;
  }
  return true;
}

bool plausible(const GpuSample& sample) {
  const auto share = [](const std::optional<double>& value) { return !value || (*value >= 0 && *value <= 1.0001); };
  const auto positive = [](const std::optional<double>& value) { return !value || *value >= 0; };
  return share(sample.utilisation) && share(sample.memory_utilisation) && positive(sample.memory_used) &&
         positive(sample.memory_total) && positive(sample.power_w);
}

}  // namespace

double unit_scale(std::string_view unit) {
  struct Unit {
    std::string_view name;
    double scale;
  };
  static constexpr std::array kUnits = {
      Unit{"%", 0.01}, Unit{"MiB", 1048576.0}, Unit{"W", 1.0},   Unit{"MHz", 1.0},          Unit{"C", 1.0},
      Unit{"MB", 1e6}, Unit{"KiB", 1024.0},    Unit{"mW", 1e-3}, Unit{"GiB", 1073741824.0}, Unit{"B", 1.0},
  };
  for (const Unit& one : kUnits) {
    if (one.name == unit) {
      return one.scale;
    }
  }
  return 0;
}

double default_scale(Column column) {
  switch (column) {
    case Column::kUtilisation:
    case Column::kMemoryUtilisation: return 0.01;
    case Column::kMemoryUsed:
    case Column::kMemoryFree:
    case Column::kMemoryTotal: return 1048576.0;
    default: return 1;
  }
}

std::size_t split_cells(std::string_view line, Cells& cells) {
  std::size_t count = 0;
  for (;;) {
    const std::size_t comma = line.find(',');
    if (count < cells.size()) {
      cells[count] = trimmed(line.substr(0, comma));
    }
    ++count;
    if (comma == std::string_view::npos) {
      return count;
    }
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> cell_number(std::string_view cell, std::string_view& unit) {
  const auto value = detail::take_number(cell);
  if (!value) {
    return std::nullopt;
  }
  unit = trimmed(cell);
  return value;
}

std::optional<Header> read_header(std::string_view line, std::span<const ColumnName> names) {
  Cells cells;
  Header header;
  header.size = split_cells(line, cells);
  if (header.size > kMostColumns) {
    return std::nullopt;
  }
  int known = 0;
  bool measures = false;
  bool utilisation = false;
  for (std::size_t i = 0; i < header.size; ++i) {
    Field& field = header.fields[i];
    field = field_of(cells[i], names);
    known += field.column == Column::kNone ? 0 : 1;
    measures = measures || is_measurement(field.column);
    utilisation = utilisation || field.column == Column::kUtilisation;
    if (field.column == Column::kId) {
      field.column = header.has_id ? Column::kKnown : Column::kId;  // the first of several id columns identifies
      header.has_id = true;
    }
  }
  const bool mostly = known * 2 >= static_cast<int>(header.size);
  return measures && (mostly || (header.has_id && utilisation)) ? std::optional(header) : std::nullopt;
}

int known_columns(std::string_view line, std::span<const ColumnName> names) {
  Cells cells;
  const std::size_t count = std::min(split_cells(line, cells), kMostColumns);
  int known = 0;
  for (std::size_t i = 0; i < count; ++i) {
    known += field_of(cells[i], names).column == Column::kNone ? 0 : 1;
  }
  return known;
}

std::optional<GpuSample> sample_of(const Header& header, const Cells& cells) {
  GpuSample sample;
  for (std::size_t i = 0; i < header.size; ++i) {
    std::string_view unit;
    const Field& field = header.fields[i];
    const bool number = cell_number(cells[i], unit).has_value();
    const bool text = field.column == Column::kThrottled || number || is_no_reading(cells[i]);
    if ((is_measurement(field.column) && !text) || !fill(sample, field, cells[i])) {
      return std::nullopt;
    }
  }
  return plausible(sample) ? std::optional(sample) : std::nullopt;
}

}  // namespace unidle::logs::detail
