// nvidia-smi --query-gpu=... --format=csv: columns in any order, units in cells or header, headers repeated, the last
// line cut off. Without a header the columns are told apart by their units.
#include <algorithm>
#include <array>
#include <charconv>

#include "unidle/base/characters.h"
#include "unidle/logs/detail/gpu_lines.h"
#include "unidle/logs/detail/numbers.h"
#include "unidle/logs/gpu_format.h"
#include "unidle/logs/lines.h"
#include "unidle/logs/timestamp.h"

namespace unidle::logs::gpu_formats {

namespace {

using detail::trimmed;

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
  kKnown,  // nvidia-smi has it, we do not use it
};

struct ColumnName {
  std::string_view name;
  Column column;
};

// Names as `nvidia-smi --help-query-gpu` lists them, older spellings too.
constexpr std::array kColumns = {
    ColumnName{"timestamp", Column::kTime},
    ColumnName{"index", Column::kId},
    ColumnName{"uuid", Column::kId},
    ColumnName{"gpu_uuid", Column::kId},
    ColumnName{"gpu_bus_id", Column::kId},
    ColumnName{"pci.bus_id", Column::kId},
    ColumnName{"name", Column::kName},
    ColumnName{"gpu_name", Column::kName},
    ColumnName{"utilization.gpu", Column::kUtilisation},
    ColumnName{"utilization.memory", Column::kMemoryUtilisation},
    ColumnName{"memory.used", Column::kMemoryUsed},
    ColumnName{"memory.free", Column::kMemoryFree},
    ColumnName{"memory.total", Column::kMemoryTotal},
    ColumnName{"power.draw", Column::kPower},
    ColumnName{"power.draw.average", Column::kPower},
    ColumnName{"power.draw.instant", Column::kPower},
    ColumnName{"power.limit", Column::kPowerLimit},
    ColumnName{"enforced.power.limit", Column::kPowerLimit},
    ColumnName{"temperature.gpu", Column::kTemperature},
    ColumnName{"clocks.sm", Column::kSmClock},
    ColumnName{"clocks.current.sm", Column::kSmClock},
    ColumnName{"clocks.max.sm", Column::kSmClockMost},
    ColumnName{"pcie.link.gen.current", Column::kLinkGen},
    ColumnName{"pcie.link.gen.gpucurrent", Column::kLinkGen},
    ColumnName{"pcie.link.gen.max", Column::kLinkGenMost},
    ColumnName{"pcie.link.gen.gpumax", Column::kLinkGenMost},
    ColumnName{"pcie.link.width.current", Column::kLinkWidth},
    ColumnName{"pcie.link.width.max", Column::kLinkWidthMost},
    ColumnName{"clocks_throttle_reasons.hw_slowdown", Column::kThrottled},
    ColumnName{"clocks_throttle_reasons.hw_thermal_slowdown", Column::kThrottled},
    ColumnName{"clocks_throttle_reasons.sw_thermal_slowdown", Column::kThrottled},
    ColumnName{"clocks_event_reasons.hw_slowdown", Column::kThrottled},
    ColumnName{"clocks_event_reasons.hw_thermal_slowdown", Column::kThrottled},
    ColumnName{"clocks_event_reasons.sw_thermal_slowdown", Column::kThrottled},
    ColumnName{"pstate", Column::kKnown},
    ColumnName{"driver_version", Column::kKnown},
    ColumnName{"count", Column::kKnown},
    ColumnName{"fan.speed", Column::kKnown},
    ColumnName{"temperature.memory", Column::kKnown},
    ColumnName{"clocks.gr", Column::kKnown},
    ColumnName{"clocks.mem", Column::kKnown},
    ColumnName{"clocks.video", Column::kKnown},
    ColumnName{"clocks.current.graphics", Column::kKnown},
    ColumnName{"clocks.current.memory", Column::kKnown},
    ColumnName{"utilization.encoder", Column::kKnown},
    ColumnName{"utilization.decoder", Column::kKnown},
    ColumnName{"compute_mode", Column::kKnown},
    ColumnName{"serial", Column::kKnown},
    ColumnName{"pci.bus", Column::kKnown},
    ColumnName{"persistence_mode", Column::kKnown},
};

constexpr std::size_t kMostColumns = 64;

struct Field {
  Column column = Column::kNone;
  double scale = 1;  // of a number without a unit of its own
};

struct Header {
  std::array<Field, kMostColumns> fields;
  std::size_t size = 0;
  bool has_id = false;
};

/// Factor that a unit stands for, in bytes, watts, hertz as they are kept; 0 for an unknown one.
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

/// Splits at commas; returns how many cells there are, at most kMostColumns of them kept.
std::size_t split(std::string_view line, std::array<std::string_view, kMostColumns>& cells) {
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

Field field_of(std::string_view cell) {
  std::string_view unit;
  if (const std::size_t bracket = cell.find(" ["); bracket != std::string_view::npos && cell.back() == ']') {
    unit = cell.substr(bracket + 2, cell.size() - bracket - 3);
    cell = cell.substr(0, bracket);
  }
  for (const ColumnName& one : kColumns) {
    if (one.name == cell) {
      const double scale = unit_scale(unit);
      return {one.column, scale > 0 ? scale : default_scale(one.column)};
    }
  }
  return {};
}

std::optional<Header> read_header(std::string_view line) {
  std::array<std::string_view, kMostColumns> cells;
  Header header;
  header.size = split(line, cells);
  if (header.size > kMostColumns) {
    return std::nullopt;
  }
  int known = 0;
  for (std::size_t i = 0; i < header.size; ++i) {
    Field& field = header.fields[i];
    field = field_of(cells[i]);
    known += field.column == Column::kNone ? 0 : 1;
    if (field.column == Column::kId) {
      field.column = header.has_id ? Column::kKnown : Column::kId;  // the first of several identifies
      header.has_id = true;
    }
  }
  return known > 0 && known * 2 >= static_cast<int>(header.size) ? std::optional(header) : std::nullopt;
}

/// A number with or without a unit; nothing for "[N/A]" and its like. The unit is what stands behind the number.
std::optional<double> cell_number(std::string_view cell, std::string_view& unit) {
  const auto value = detail::take_number(cell);
  if (!value) {
    return std::nullopt;
  }
  unit = trimmed(cell);
  return value;
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

/// True unless the cell holds something that no such column can hold: then the line is broken, not the value absent.
bool fill(GpuSample& sample, const Field& field, std::string_view cell) {
  const auto value = [&] { return cell_value(cell, field); };
  switch (field.column) {
    case Column::kTime: {
      std::string_view rest = cell;
      sample.t_ns = take_date_time(rest);
      return sample.t_ns.has_value();
    }
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
      if (cell == "Active" || cell == "Not Active") {
        sample.throttled = sample.throttled.value_or(false) || cell == "Active";
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

/// Columns of a headless row by their units: nvidia-smi gives utilisation before memory utilisation, and the larger of
/// two sizes is the whole.
std::optional<Header> header_from_units(std::string_view line) {
  std::array<std::string_view, kMostColumns> cells;
  Header header;
  header.size = split(line, cells);
  if (header.size > kMostColumns) {
    return std::nullopt;
  }
  std::optional<std::size_t> used;
  double used_bytes = 0;
  bool power = false;
  int found = 0;
  for (std::size_t i = 0; i < header.size; ++i) {
    std::string_view unit;
    const auto value = cell_number(cells[i], unit);
    std::string_view time = cells[i];
    Field& field = header.fields[i];
    if (take_date_time(time)) {
      field.column = Column::kTime;
    } else if (value && unit == "%") {
      field.column = found++ == 0 ? Column::kUtilisation : Column::kMemoryUtilisation;
    } else if (value && unit == "MiB") {
      const bool whole = used && *value * 1048576.0 >= used_bytes;
      field.column = whole ? Column::kMemoryTotal : Column::kMemoryUsed;
      used = i;
      used_bytes = *value * 1048576.0;
    } else if (value && unit == "W") {
      field.column = power ? Column::kPowerLimit : Column::kPower;
      power = true;
    }
    field.scale = default_scale(field.column);
  }
  return found > 0 ? std::optional(header) : std::nullopt;
}

/// How many fields of the line name a column of nvidia-smi's CSV.
int known_columns(std::string_view header) {
  std::array<std::string_view, kMostColumns> cells;
  const std::size_t count = std::min(split(header, cells), kMostColumns);
  int known = 0;
  for (std::size_t i = 0; i < count; ++i) {
    known += field_of(cells[i]).column == Column::kNone ? 0 : 1;
  }
  return known;
}

/// True for a line like "2025/08/22 16:46:12.159, 0 %, 572 MiB": cells, at least two of them numbers with a unit.
bool is_row(std::string_view line) {
  std::array<std::string_view, kMostColumns> cells;
  const std::size_t count = std::min(split(line, cells), kMostColumns);
  int with_unit = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::string_view unit;
    with_unit += cell_number(cells[i], unit) && unit_scale(unit) > 0 ? 1 : 0;
  }
  return with_unit >= 2;
}

/// Rows without an id are told apart by their place in a round: rows of one round are milliseconds apart.
class RoundCounter {
 public:
  std::string_view id_of(const GpuSample& sample) {
    constexpr std::int64_t kSameRoundNs = 50'000'000;
    const bool same = sample.t_ns && last_ns_ && *sample.t_ns >= *last_ns_ && *sample.t_ns - *last_ns_ < kSameRoundNs;
    place_ = same ? place_ + 1 : 0;
    last_ns_ = sample.t_ns;
    const auto [end, error] = std::to_chars(text_.data(), text_.data() + text_.size(), place_);
    return {text_.data(), static_cast<std::size_t>(end - text_.data())};
  }

 private:
  std::optional<std::int64_t> last_ns_;
  int place_ = 0;
  std::array<char, 16> text_{};
};

class QueryReader {
 public:
  QueryReader(GpuLog& log, const Window& window) : log_(log), window_(window) {}

  void read(std::string_view line) {
    line = trimmed(line);
    if (line.empty()) {
      return;
    }
    const bool may_be_row = header_ && (is_digit(line.front()) || line.front() == '[' || !known_columns(line));
    if (!may_be_row) {
      if (auto header = read_header(line)) {
        header_ = *header;
        return;
      }
      header_ = header_ ? header_ : header_from_units(line);
    }
    if (!header_ || !row(line)) {
      broken(line);
    }
  }

 private:
  bool row(std::string_view line) {
    std::array<std::string_view, kMostColumns> cells;
    if (split(line, cells) != header_->size) {
      return false;
    }
    GpuSample sample;
    for (std::size_t i = 0; i < header_->size; ++i) {
      if (!fill(sample, header_->fields[i], cells[i])) {
        return false;
      }
    }
    if (!plausible(sample)) {
      return false;
    }
    if (window_.contains(sample.t_ns)) {
      if (!header_->has_id) {
        sample.id = rounds_.id_of(sample);
      }
      log_.add(sample);
    }
    return true;
  }

  void broken(std::string_view line) {
    ++log_.broken_lines;
    if (line.find("is lost") != std::string_view::npos ||
        line.find("NVIDIA-SMI has failed") != std::string_view::npos ||
        line.find("Unable to determine the device handle") != std::string_view::npos ||
        line.find("Failed to initialize NVML") != std::string_view::npos) {
      log_.complaint = std::string(line.substr(0, 300));
    }
  }

  GpuLog& log_;
  const Window& window_;
  std::optional<Header> header_;
  RoundCounter rounds_;
};

/// More lines of it than others. The last line may be cut off.
bool is_query(std::string_view head) {
  Source source("", head);
  Lines lines(source);
  std::string_view line;
  int rows = 0;
  int others = 0;
  bool header = false;
  while (lines.next(line)) {
    line = trimmed(line);
    if (line.empty() || (!lines.ended() && rows + others > 0)) {
      continue;
    }
    const auto cells = std::count(line.begin(), line.end(), ',') + 1;
    if (known_columns(line) * 2 >= cells) {
      header = true;
      ++rows;
    } else if (is_row(line) || (header && cells > 1 && is_digit(line.front()))) {
      ++rows;
    } else {
      ++others;
    }
  }
  return rows > others;
}

GpuLog read_query(Source& source, const Window& window) {
  return detail::read_gpu_lines<QueryReader>(
      source, window, "rows of nvidia-smi --query-gpu=timestamp,utilization.gpu,... --format=csv");
}

}  // namespace

const GpuFormat& nvidia_smi_query() {
  static const GpuFormat kFormat = {"nvidia-smi --query-gpu", is_query, read_query};
  return kFormat;
}

}  // namespace unidle::logs::gpu_formats
