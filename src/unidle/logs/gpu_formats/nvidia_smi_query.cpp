// nvidia-smi --query-gpu=... --format=csv: columns in any order, units in cells or header, repeated headers, a last
// line that is cut off. Without a header, units identify the columns.
#include <array>

#include "unidle/logs/detail/gpu_csv.h"
#include "unidle/logs/detail/gpu_lines.h"
#include "unidle/logs/gpu_format.h"
#include "unidle/logs/timestamp.h"

namespace unidle::logs::gpu_formats {

namespace {

using detail::Column;
using detail::ColumnName;
using detail::Field;
using detail::Header;

// Names from `nvidia-smi --help-query-gpu`, including older spellings.
constexpr std::array kNvidiaColumns = {
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
    ColumnName{"clocks_throttle_reasons.active", Column::kThrottled},
    ColumnName{"clocks_event_reasons.active", Column::kThrottled},
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

/// Identifies the columns of a row without a header by two or more units: nvidia-smi prints utilisation before memory
/// utilisation, and the larger of two sizes is the total.
std::optional<Header> header_from_units(std::string_view line) {
  detail::Cells cells;
  Header header;
  header.size = detail::split_cells(line, cells);
  if (header.size > detail::kMostColumns) {
    return std::nullopt;
  }
  std::optional<std::size_t> used;
  double used_bytes = 0;
  bool power = false;
  int found = 0;
  int with_unit = 0;
  for (std::size_t i = 0; i < header.size; ++i) {
    std::string_view unit;
    const auto value = detail::cell_number(cells[i], unit);
    with_unit += value && detail::unit_scale(unit) > 0 ? 1 : 0;
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
    field.scale = detail::default_scale(field.column);
  }
  return found > 0 && with_unit > 1 ? std::optional(header) : std::nullopt;
}

class QueryReader : public detail::GpuCsvReader {
 public:
  QueryReader(GpuLog& log, const Window& window) : GpuCsvReader(log, window, kNvidiaColumns, header_from_units) {}
};

bool is_query(std::string_view head) { return detail::is_gpu_csv(head, kNvidiaColumns, header_from_units); }

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
