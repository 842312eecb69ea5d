// nvidia-smi -q -x in a loop (-l): one XML document per round, an element on each line.
#include <array>

#include "unidle/base/characters.h"
#include "unidle/logs/detail/gpu_columns.h"
#include "unidle/logs/detail/gpu_lines.h"
#include "unidle/logs/detail/numbers.h"
#include "unidle/logs/gpu_format.h"
#include "unidle/logs/timestamp.h"

namespace unidle::logs::gpu_formats {

namespace {

constexpr std::string_view kRoot = "<nvidia_smi_log>";

/// An element of a section; drivers have renamed some of them.
struct Element {
  std::string_view section;
  std::string_view name;
  std::optional<double> GpuSample::*reading;
};
constexpr std::array kElements = {
    Element{"utilization", "gpu_util", &GpuSample::utilisation},
    Element{"utilization", "memory_util", &GpuSample::memory_utilisation},
    Element{"fb_memory_usage", "total", &GpuSample::memory_total},
    Element{"fb_memory_usage", "used", &GpuSample::memory_used},
    Element{"fb_memory_usage", "free", &GpuSample::memory_free},
    Element{"power_readings", "power_draw", &GpuSample::power_w},
    Element{"power_readings", "power_limit", &GpuSample::power_limit_w},
    Element{"gpu_power_readings", "power_draw", &GpuSample::power_w},
    Element{"gpu_power_readings", "instant_power_draw", &GpuSample::power_w},
    Element{"gpu_power_readings", "current_power_limit", &GpuSample::power_limit_w},
    Element{"temperature", "gpu_temp", &GpuSample::temperature_c},
    Element{"clocks", "sm_clock", &GpuSample::sm_mhz},
    Element{"max_clocks", "sm_clock", &GpuSample::sm_mhz_most},
};

class DocumentsReader {
 public:
  DocumentsReader(GpuLog& log, const Window& window) : log_(log), window_(window) {}

  void read(std::string_view line) {
    std::string_view text = trimmed(line);
    if (!text.starts_with("<")) {
      if (detail::is_complaint(text)) {
        detail::complain(text, log_);
      }
      return;
    }
    if (text == kRoot) {
      t_ns_.reset();
    } else if (text.starts_with("<gpu id=\"")) {
      text.remove_prefix(9);
      id_.assign(text.substr(0, text.find('"')));
    } else if (text == "</gpu>") {
      end_of_gpu();
    } else if (const std::size_t end = text.find('>'); end != std::string_view::npos) {
      const std::string_view name = text.substr(1, end - 1);
      const std::string_view rest = text.substr(end + 1);
      if (rest.empty()) {
        section_.assign(name);
      } else {
        value(name, rest.substr(0, rest.find('<')));
      }
    }
  }

 private:
  void value(std::string_view name, std::string_view text) {
    if (name == "timestamp") {
      t_ns_ = take_unix_date(text);
    } else if (name == "product_name") {
      name_.assign(text);
    }
    for (const Element& one : kElements) {
      std::string_view unit;
      const auto number = one.section == section_ && one.name == name ? detail::cell_number(text, unit) : std::nullopt;
      if (number && *number >= 0 && detail::unit_scale(unit) > 0) {
        sample_.*one.reading = *number * detail::unit_scale(unit);
        told_ = true;
      }
    }
  }

  void end_of_gpu() {
    sample_.id = id_;
    sample_.name = name_;
    sample_.t_ns = t_ns_;
    if (told_ && window_.contains(t_ns_)) {
      log_.add(sample_);
    }
    sample_ = {};
    id_.clear();
    name_.clear();
    section_.clear();
    told_ = false;
  }

  GpuLog& log_;
  const Window& window_;
  GpuSample sample_;
  std::string id_;
  std::string name_;
  std::string section_;
  std::optional<std::int64_t> t_ns_;
  bool told_ = false;
};

bool is_documents(std::string_view head) {
  const std::size_t root = head.find(kRoot);
  return root != std::string_view::npos && head.substr(0, root).starts_with("<?xml");
}

GpuLog read_documents(Source& source, const Window& window) {
  return detail::read_gpu_lines<DocumentsReader>(source, window,
                                                 "documents of nvidia-smi -q -x with utilisation in them");
}

}  // namespace

const GpuFormat& nvidia_smi_xml() {
  static const GpuFormat kFormat = {"nvidia-smi -q -x", is_documents, read_documents};
  return kFormat;
}

}  // namespace unidle::logs::gpu_formats
