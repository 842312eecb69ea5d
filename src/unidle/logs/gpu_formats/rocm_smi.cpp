// rocm-smi --csv and amd-smi metric or monitor --csv, of AMD, called in a loop or with -w.
#include <array>

#include "unidle/logs/detail/gpu_csv.h"
#include "unidle/logs/detail/gpu_lines.h"
#include "unidle/logs/gpu_format.h"

namespace unidle::logs::gpu_formats {

namespace {

using detail::Column;
using detail::ColumnName;

// rocm-smi's names without their units, then amd-smi's. amd-smi's "mem" is a fraction in one command and a temperature
// in another.
constexpr std::array kAmdColumns = {
    ColumnName{"timestamp", Column::kTime},
    ColumnName{"device", Column::kId},
    ColumnName{"gpu", Column::kId},
    ColumnName{"GPU use", Column::kUtilisation},
    ColumnName{"GPU Memory Read/Write Activity", Column::kMemoryUtilisation},
    ColumnName{"VRAM Total Memory", Column::kMemoryTotal},
    ColumnName{"VRAM Total Used Memory", Column::kMemoryUsed},
    ColumnName{"Average Graphics Package Power", Column::kPower},
    ColumnName{"Current Socket Graphics Package Power", Column::kPower},
    ColumnName{"Max Graphics Package Power", Column::kPowerLimit},
    ColumnName{"Temperature (Sensor edge)", Column::kTemperature},
    ColumnName{"Temperature (Sensor junction)", Column::kKnown},
    ColumnName{"Temperature (Sensor memory)", Column::kKnown},
    ColumnName{"GPU Memory Allocated", Column::kKnown},
    ColumnName{"GFX Activity", Column::kKnown},
    ColumnName{"gfx_activity", Column::kUtilisation},
    ColumnName{"gfx", Column::kUtilisation},
    ColumnName{"umc_activity", Column::kMemoryUtilisation},
    ColumnName{"mm_activity", Column::kKnown},
    ColumnName{"used_vram", Column::kMemoryUsed},
    ColumnName{"vram_used", Column::kMemoryUsed},
    ColumnName{"free_vram", Column::kMemoryFree},
    ColumnName{"vram_free", Column::kMemoryFree},
    ColumnName{"total_vram", Column::kMemoryTotal},
    ColumnName{"vram_total", Column::kMemoryTotal},
    ColumnName{"socket_power", Column::kPower},
    ColumnName{"power_usage", Column::kPower},
    ColumnName{"max_power", Column::kPowerLimit},
    ColumnName{"edge", Column::kTemperature},
    ColumnName{"hotspot", Column::kKnown},
    ColumnName{"mem", Column::kKnown},
    ColumnName{"gfx_clk", Column::kSmClock},
    ColumnName{"gfx_0_clk", Column::kSmClock},
    ColumnName{"gfx_0_max_clk", Column::kSmClockMost},
};

class RocmReader : public detail::GpuCsvReader {
 public:
  RocmReader(GpuLog& log, const Window& window) : GpuCsvReader(log, window, kAmdColumns, nullptr) {}
};

bool is_rocm(std::string_view head) { return detail::is_gpu_csv(head, kAmdColumns, nullptr); }

GpuLog read_rocm(Source& source, const Window& window) {
  return detail::read_gpu_lines<RocmReader>(source, window,
                                            "rows of rocm-smi --showuse --csv or amd-smi metric --usage --csv");
}

}  // namespace

const GpuFormat& rocm_smi() {
  static const GpuFormat kFormat = {"rocm-smi", is_rocm, read_rocm, "rocm"};
  return kFormat;
}

}  // namespace unidle::logs::gpu_formats
