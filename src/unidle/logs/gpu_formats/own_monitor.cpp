// CSV that people's own scripts write about GPUs: columns are identified by name, units are percent and MiB.
#include <algorithm>
#include <array>

#include "unidle/base/characters.h"
#include "unidle/logs/detail/gpu_csv.h"
#include "unidle/logs/detail/gpu_lines.h"
#include "unidle/logs/gpu_format.h"

namespace unidle::logs::gpu_formats {

namespace {

using detail::Column;
using detail::ColumnName;

constexpr std::array kOwnColumns = {
    ColumnName{"timestamp", Column::kTime},
    ColumnName{"time", Column::kTime},
    ColumnName{"Time", Column::kTime},
    ColumnName{"elapsed_sec", Column::kKnown},
    ColumnName{"gpu_id", Column::kId},
    ColumnName{"gpu_index", Column::kId},
    ColumnName{"index_gpu", Column::kId},
    ColumnName{"GPU_ID", Column::kId},
    ColumnName{"name", Column::kName},
    ColumnName{"gpu_name", Column::kName},
    ColumnName{"gpu_util", Column::kUtilisation},
    ColumnName{"gpu_util(%)", Column::kUtilisation},
    ColumnName{"gpu_util_pct", Column::kUtilisation},
    ColumnName{"gpu_util_percent", Column::kUtilisation},
    ColumnName{"gpu_utilization", Column::kUtilisation},
    ColumnName{"gpu_utilization_percent", Column::kUtilisation},
    ColumnName{"gpu_usage", Column::kUtilisation},
    ColumnName{"GPU_Usage", Column::kUtilisation},
    ColumnName{"GPU_Util", Column::kUtilisation},
    ColumnName{"GPU_Utilization", Column::kUtilisation},
    ColumnName{"Utilization", Column::kUtilisation},
    ColumnName{"gpu_memory_utilization", Column::kMemoryUtilisation},
    ColumnName{"memory_used", Column::kMemoryUsed},
    ColumnName{"mem_used_mb", Column::kMemoryUsed},
    ColumnName{"gpu_memory_used", Column::kMemoryUsed},
    ColumnName{"memory_total", Column::kMemoryTotal},
    ColumnName{"mem_total_mb", Column::kMemoryTotal},
    ColumnName{"gpu_memory_total", Column::kMemoryTotal},
    ColumnName{"gpu_memory_free", Column::kMemoryFree},
    ColumnName{"memory_used(MB)", Column::kMemoryUsed},
    ColumnName{"memory_total(MB)", Column::kMemoryTotal},
};

class OwnReader : public detail::GpuCsvReader {
 public:
  OwnReader(GpuLog& log, const Window& window) : GpuCsvReader(log, window, kOwnColumns, nullptr) {}
};

/// "Utilization" may be that of a CPU: some name must mention a GPU.
bool is_own_monitor(std::string_view head) {
  const std::string first = lower(head.substr(0, head.find('\n')));
  return first.find("gpu") != std::string::npos && detail::is_gpu_csv(head, kOwnColumns, nullptr);
}

/// Some scripts write fractions instead of percent: without a value above 1 this is undecidable.
void drop_shares(GpuLog& log) {
  constexpr double kOnePercent = 0.01;
  const auto most = std::ranges::max_element(
      log.gpus, {}, [](const GpuUse& use) { return use.utilisation ? use.utilisation.most : 0; });
  const bool shares = most != log.gpus.end() && most->utilisation && most->utilisation.most > 0 &&
                      most->utilisation.most <= kOnePercent;
  for (GpuUse& use : log.gpus) {
    use.utilisation = shares ? Readings{} : use.utilisation;
  }
}

GpuLog read_own(Source& source, const Window& window) {
  GpuLog log = detail::read_gpu_lines<OwnReader>(source, window, "rows with a column such as gpu_utilization");
  drop_shares(log);
  return log;
}

}  // namespace

const GpuFormat& own_monitor() {
  static const GpuFormat kFormat = {"CSV with gpu_utilization", is_own_monitor, read_own, "unknown"};
  return kFormat;
}

}  // namespace unidle::logs::gpu_formats
